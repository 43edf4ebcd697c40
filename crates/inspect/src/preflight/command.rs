//! Running programs: each with a limit, none with a terminal.

use std::io::ErrorKind;
use std::process::{Output, Stdio};

use tiphys_assess::preflight::tools::Ran;
use tokio::process::Command;
use tokio::time::timeout;

use super::{ENDPOINT_TIMEOUT, silence};

/// What became of a program.
pub(super) enum Ended {
    Absent,
    /// It could not be started, or did not end.
    Not(String),
    With(Output),
}

/// What still runs when its time is over is killed.
pub(super) async fn run(command: &mut Command) -> Ended {
    // What is read of it must not depend on a language. Ansible does not run without UTF-8.
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).kill_on_drop(true);
    match timeout(ENDPOINT_TIMEOUT, command.output()).await {
        Err(_) => Ended::Not(silence()),
        Ok(Ok(output)) => Ended::With(output),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => Ended::Absent,
        Ok(Err(error)) => Ended::Not(error.to_string()),
    }
}

/// What a program says of itself on stdout.
pub(super) async fn said(program: &str, args: &[&str]) -> Ran {
    match run(Command::new(program).args(args)).await {
        Ended::Absent => Ran::Absent,
        Ended::Not(why) => Ran::Failed(why),
        Ended::With(output) if output.status.success() => {
            Ran::Said(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ended::With(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let why = format!("failed with {}: {}", output.status, last.trim());
            Ran::Failed(why.trim_end_matches([':', ' ']).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_program_says_is_kept() {
        assert_eq!(said("sh", &["-c", "echo jq-1.6"]).await, Ran::Said("jq-1.6\n".to_owned()));
        assert_eq!(said("no-such-program", &[]).await, Ran::Absent);
        let failed = Ran::Failed("failed with exit status: 3: no".to_owned());
        assert_eq!(said("sh", &["-c", "echo no >&2; exit 3"]).await, failed);
        let mute = Ran::Failed("failed with exit status: 1".to_owned());
        assert_eq!(said("false", &[]).await, mute);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_hangs_has_failed() {
        let failed = Ran::Failed("no answer within 5 s".to_owned());
        assert_eq!(said("sleep", &["1000"]).await, failed);
    }
}
