//! Running programs that end by themselves.

use std::process::{Command, Output, Stdio};

use crate::error::LabError;

/// Runs a command to its end; what it printed, or an error with all of it.
pub(crate) fn run(command: &mut Command) -> Result<String, LabError> {
    let output = output(command)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(LabError::Command {
        command: said(command),
        status: output.status.to_string(),
        output: format!("{}{}", text(&output.stdout), text(&output.stderr)),
    })
}

/// Runs a command to its end, whatever it comes to.
pub(crate) fn output(command: &mut Command) -> Result<Output, LabError> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| LabError::Start { command: said(command), source })
}

/// The command as a person would have typed it.
pub(crate) fn said(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
