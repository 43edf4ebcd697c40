//! The only place that writes to the terminal: data to stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// Writes data to stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn data(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// The columns of the terminal that data goes to, if it goes to one.
pub(crate) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    Some(terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)))
}

/// Says something that is no data.
pub(crate) fn note(text: &str) {
    error(&format!("note: {text}\n"));
}

/// Writes to stderr. If even that is closed, nobody is left to tell.
pub(crate) fn error(text: &str) {
    anstream::stderr().write_all(text.as_bytes()).unwrap_or_default();
}
