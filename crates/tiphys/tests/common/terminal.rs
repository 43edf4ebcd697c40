//! Running the program on a terminal.

use std::io::Read;
use std::num::NonZeroU16;
use std::path::Path;

use pty_process::Size;
use pty_process::blocking::{Command, open};

/// Runs the program on a terminal: all that it wrote, and its exit code.
pub(crate) fn on_a_terminal(
    directory: &Path,
    rows: u16,
    columns: u16,
    args: &[&str],
) -> (Vec<u8>, i32) {
    let colourful = [("TERM", "xterm-256color")];
    on_a_terminal_with(directory, &colourful, rows, columns, args)
}

/// The same in this environment.
pub(crate) fn on_a_terminal_with(
    directory: &Path,
    environment: &[(&str, &str)],
    rows: u16,
    columns: u16,
    args: &[&str],
) -> (Vec<u8>, i32) {
    let (mut terminal, other_end) = open().unwrap();
    terminal.resize(Size::new(rows, columns)).unwrap();
    let command = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(args)
        .env_clear()
        .envs(environment.iter().copied())
        .current_dir(directory);
    let mut child = command.spawn(other_end).unwrap();
    let stream = read_to_hangup(&mut terminal);
    (stream, child.wait().unwrap().code().unwrap())
}

pub(crate) fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

/// Linux tells the end of a terminal session as an error.
fn read_to_hangup(terminal: &mut impl Read) -> Vec<u8> {
    const HANGUP: i32 = 5;
    let mut stream = Vec::new();
    if let Err(error) = terminal.read_to_end(&mut stream) {
        assert_eq!(error.raw_os_error(), Some(HANGUP), "{error}");
    }
    stream
}
