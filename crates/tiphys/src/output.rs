//! The only place that writes to the terminal: data to stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_report::{Notice, Size, one_line, terminal_text, width};

use crate::failure::Failure;
use crate::lossy::LossyWriter;

/// Writes data for programs to stdout, byte for byte.
pub(crate) fn data(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    data_while_read(write).map(drop)
}

/// As [`data`], for what would go on for ever: whether anybody still reads.
pub(crate) fn data_while_read(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<bool, Failure> {
    buffered(io::stdout().lock(), write)
}

/// Writes text for people to stdout. Colours are stripped where they do not belong, and everything
/// else that commands a terminal is replaced: nothing that a program reads back may go this way.
pub(crate) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut text = Vec::new();
    write(&mut text).map_err(Failure::Output)?;
    text_while_read(0, &String::from_utf8_lossy(&text)).map(drop)
}

/// As [`text`], for what would go on for ever: whether anybody still reads. So many lines that
/// were written last are erased before.
pub(crate) fn text_while_read(erased: usize, text: &str) -> Result<bool, Failure> {
    buffered(anstream::stdout().lock(), |out| {
        write!(out, "{}{}", erase(erased), terminal_text(text))
    })
}

/// Moves up over lines, and clears from there to the end of the screen.
pub(crate) fn erase(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\u{1b}[{lines}A\u{1b}[J") }
}

/// As [`data`], for what must not end because it cannot be written.
pub(crate) fn lossy_data() -> LossyWriter {
    LossyWriter::new(Box::new(io::stdout()))
}

/// For text, likewise: whoever writes to it passes that through [`terminal_text`].
pub(crate) fn lossy_text() -> LossyWriter {
    LossyWriter::new(Box::new(io::BufWriter::new(anstream::stdout())))
}

/// A reader that has seen enough (`| head`) is no failure.
fn buffered(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<bool, Failure> {
    let mut out = io::BufWriter::new(out);
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Output(error)),
    }
}

/// Whether what was written to stdout can be erased again. Where colours are not wanted (`NO_COLOR`,
/// `CLICOLOR=0`, `TERM=dumb`), all that commands a terminal is left out. What is traced (`-v`) would
/// come between.
pub(crate) fn can_redraw() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal()
        && AutoStream::choice(&stdout) != ColorChoice::Never
        && !tracing::enabled!(tracing::Level::INFO)
}

/// The columns of the terminal that data goes to, if it goes to one.
pub(crate) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    Some(terminal_size().columns)
}

/// The size of the terminal that text goes to; the smallest usual one if it does not say.
pub(crate) fn terminal_size() -> Size {
    let size = terminal_size::terminal_size();
    size.map_or(Size { columns: 80, rows: 24 }, |(width, height)| Size {
        columns: usize::from(width.0),
        rows: usize::from(height.0),
    })
}

/// How many columns a line takes, colours left out.
pub(crate) fn shown_width(line: &str) -> usize {
    width(&strip_str(line).to_string())
}

/// How many rows a line of this width takes on a terminal that is so wide.
pub(crate) fn rows(width: usize, columns: usize) -> usize {
    width.div_ceil(columns.max(1)).max(1)
}

/// Whether all that is said is said as JSON, one object per line: in containers.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, all that is said is JSON.
pub(crate) fn speak_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

pub(crate) fn speaks_json() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// Says something that is no data, on one line.
pub(crate) fn note(text: &str) {
    say("note", &format!("note: {}\n", one_line(text)), text);
}

/// Likewise, for what somebody should do something about.
pub(crate) fn warning(text: &str) {
    say("warning", &format!("warning: {}\n", one_line(text)), text);
}

/// Says why the program failed.
pub(crate) fn failure(failure: &Failure) {
    if !speaks_json() {
        return write_text(&failure.render());
    }
    let Notice { what, place, why, next } = failure.notice();
    write_json(json!({
        "level": "error", "message": what, "place": place, "why": why, "next": next,
        "exit": failure.exit().code(),
    }));
}

/// Says something else to people: a table, a summary, a question.
pub(crate) fn aside(text: &str) {
    say("note", text, text);
}

fn say(level: &str, text: &str, message: &str) {
    if speaks_json() {
        let message = strip_str(message).to_string();
        write_json(json!({ "level": level, "message": message.trim() }));
    } else {
        write_text(text);
    }
}

/// Writes text to stderr. If even that is closed, nobody is left to tell.
fn write_text(text: &str) {
    anstream::stderr().write_all(terminal_text(text).as_bytes()).unwrap_or_default();
}

/// The same for a line of JSON. What is not known is left out.
fn write_json(mut line: Value) {
    if let Some(fields) = line.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.insert("at".to_owned(), format!("{:.3}", Timestamp::now()).into());
        fields.insert("kind".to_owned(), "log".into());
    }
    io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap_or_default();
}
