//! Running the program, and comparing what it did with what it did before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::{Assert, Data};

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

/// Compares each transcript with `NAME.out` in a folder. A transcript without a file fails, and
/// so does a file without a transcript. `SNAPSHOTS=overwrite` accepts what was printed; then
/// read the difference before you commit it.
pub(crate) fn compare(folder: &Path, transcripts: &BTreeMap<String, Ran>) {
    // Raw: in other modes, a line of `...` (which our diagnostics contain) matches anything.
    let assert = Assert::new().action_env("SNAPSHOTS");
    let mut failures: Vec<String> = Vec::new();
    for (name, ran) in transcripts {
        let expected = Data::read_from(&folder.join(format!("{name}.out")), None).raw();
        let actual = Data::text(ran.transcript.clone());
        if let Err(difference) = assert.try_eq(Some(name), actual, expected) {
            failures.push(difference.to_string());
        }
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "out") && !transcripts.contains_key(name) {
            failures.push(format!("nothing is compared with {name}.out"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
