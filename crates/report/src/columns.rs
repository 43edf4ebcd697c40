//! Text in columns. Widths are counted without styles, so colour cannot push a column aside.

use anstyle::Style;

use crate::harmless::{one_line, width};

/// One cell: text, whoever wrote it, and how it looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Self {
        Cell { text: one_line(text.as_ref()), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text, Style::new())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Two spaces between columns, nothing after the last.
pub(crate) fn columns<const N: usize>(align: [Align; N], rows: &[[Cell; N]]) -> Vec<String> {
    let widest =
        |column: usize| rows.iter().map(|row| width(&row[column].text)).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(widest);
    let line = |row: &[Cell; N]| {
        let cells = row.iter().zip(align).zip(widths).map(|((cell, align), widest)| {
            let space = " ".repeat(widest - width(&cell.text));
            let Cell { text, style } = cell;
            match align {
                _ if text.is_empty() => space,
                Align::Left => format!("{style}{text}{style:#}{space}"),
                Align::Right => format!("{space}{style}{text}{style:#}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
