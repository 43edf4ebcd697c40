//! Output that cannot be written: a run goes on, ends as it would have, and says what is missing.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::fs::File;
use std::process::{Command, Output, Stdio};

const FULL: &str = "No space left on device (os error 28)";
const CLOSED: &str = "Broken pipe (os error 32)";

fn rehearse(args: &str, stdout: Stdio) -> Output {
    let here = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.env_clear().current_dir(here.path());
    command.arg("rehearse").args(args.split_whitespace());
    command.stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// Nobody reads it any more.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

/// Exit code with a stdout that works, and with one that does not.
const CASES: [(&str, i32, i32); 6] = [
    ("", 0, 0),
    ("--fault ceph-cluster=degraded", 1, 1),
    ("--teardown --scope stack:monitoring", 0, 0),
    ("-o jsonl", 0, 1),
    ("-o jsonl --teardown --scope stack:monitoring", 0, 1),
    ("-o jsonl --fault *=lease-lost@2m", 8, 8),
];

#[test]
fn a_rehearsal_ends_as_it_would_have_and_says_what_is_missing() {
    for (args, shown_code, code) in CASES {
        let shown = rehearse(args, Stdio::piped());
        assert_eq!(shown.status.code(), Some(shown_code), "{args}");
        let lines = String::from_utf8(shown.stdout).unwrap().lines().count();
        let stderr = String::from_utf8(shown.stderr).unwrap();
        for (stdout, why) in [(full(), FULL), (closed(), CLOSED)] {
            let output = rehearse(args, stdout);
            let missing = format!("warning: {lines} lines were not written to stdout: {why}\n");
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(told, format!("{stderr}{missing}"), "{args}");
            assert_eq!(output.status.code(), Some(code), "{args}: {why}");
        }
    }
}
