//! Running the program, and comparing what it did with what it did before.

mod snapshots;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program in a directory, with nothing of the caller's environment.
pub(crate) fn tiphys(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.env_clear().current_dir(directory);
    command
}

/// What the program did: exit code, stdout and stderr together.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) transcript: String,
}

impl Ran {
    /// `said` is the command as a person would have typed it.
    pub(crate) fn new(said: &str, output: &Output) -> Self {
        let code = output.status.code();
        let status = code.map_or_else(|| output.status.to_string(), |code| format!("exit {code}"));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let transcript = format!("$ {said}\n{status}\n--- stdout\n{out}--- stderr\n{err}");
        Ran { code, transcript }
    }
}

/// Where the files of a test lie.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Compares each transcript with `NAME.out` in a folder.
pub(crate) fn compare(folder: &Path, transcripts: &BTreeMap<String, Ran>) {
    let texts = transcripts.iter().map(|(name, ran)| (name.as_str(), ran.transcript.as_str()));
    snapshots::compare(folder, &texts.collect::<Vec<_>>());
}
