//! Text in columns. Widths are counted without styles, so colour cannot push a column aside.

use anstyle::Style;

/// One cell: text, and how it looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
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
    let width = |column: usize| {
        rows.iter().map(|row| row[column].text.chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[Cell; N]| {
        let cells = row.iter().zip(align).zip(widths).map(|((cell, align), width)| {
            let space = " ".repeat(width - cell.text.chars().count());
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
