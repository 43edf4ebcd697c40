//! What a rehearsal shows: piped, as JSON, and on terminals of two sizes. Time is virtual, so
//! every byte is the same on every machine.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;
#[path = "common/terminal.rs"]
mod terminal;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::{Assert, Data};

use crate::common::{Ran, compare, folder, tiphys};
use crate::terminal::{nonzero, on_a_terminal, on_a_terminal_with};

/// Name, arguments, exit code.
const PIPED: [(&str, &str, i32); 17] = [
    ("piped", "rehearse", 0),
    ("piped-other-seed", "rehearse --seed 7 --scope stack:monitoring", 0),
    ("piped-degraded", "rehearse --fault ceph-cluster=degraded", 1),
    ("piped-refuse", "rehearse --fault harbor=refuse", 1),
    ("piped-degrade-later", "rehearse --fault ceph-cluster=degrade-later", 1),
    ("piped-crash", "rehearse --fault *=crash@2m --scope stack:monitoring", 0),
    ("piped-lease-lost", "rehearse --fault *=lease-lost@2m", 8),
    ("piped-revision-moved", "rehearse --fault metallb=revision-moved --scope app:metallb", 0),
    ("piped-deadline", "rehearse -f hasty.yaml", 7),
    ("piped-teardown", "rehearse --teardown --scope stack:monitoring", 0),
    (
        "piped-stuck-finalizer",
        "rehearse --teardown --fault ingress-nginx=stuck-finalizer --scope stack:infrastructure",
        1,
    ),
    ("json-lines", "rehearse -o jsonl --fault vault=hang", 1),
    ("usage-unknown-fault", "rehearse --fault vault=melt", 2),
    ("usage-fault-of-the-run", "rehearse --fault vault=crash", 2),
    ("unknown-app", "rehearse --fault vautl=hang", 5),
    (
        "faults-that-do-not-strike",
        "rehearse --scope app:metallb --fault vault=hang --fault metallb=hang@3h \
         --fault metallb=stuck-finalizer",
        0,
    ),
    ("seeds", "rehearse --seeds 20 --seed 100", 0),
];

/// It cannot be deployed in its time.
const HASTY: &str = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: hasty }
spec:
  timeout: 30s
  concurrency: 1
  stacks:
    - name: all
      apps:
        - { name: database }
        - { name: web, dependsOn: [database] }
        - { name: shop, dependsOn: [web] }
        - { name: zoo }
";

#[test]
fn piped_rehearsals_print_as_before() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("hasty.yaml"), HASTY).unwrap();
    let mut transcripts = BTreeMap::new();
    for (name, args, code) in PIPED {
        let output = tiphys(directory.path()).args(args.split_whitespace()).output().unwrap();
        let ran = Ran::new(&format!("tiphys {args}"), &output);
        assert_eq!(ran.code, Some(code), "{name}:\n{}", ran.transcript);
        transcripts.insert(name.to_owned(), ran);
    }
    let terminals =
        [("terminal-60x24", 24, 60), ("terminal-80x24", 24, 80), ("terminal-120x40", 40, 120)];
    for (name, rows, columns) in terminals {
        let screens = screens(directory.path(), rows, columns);
        transcripts.insert(name.to_owned(), Ran { code: Some(1), transcript: screens });
    }
    compare(&folder("rehearse"), &transcripts);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let directory = tempfile::tempdir().unwrap();
    let log = |seed: &str| {
        let args = ["rehearse", "-o", "jsonl", "--fault", "*=slow-api", "--seed", seed];
        tiphys(directory.path()).args(args).output().unwrap().stdout
    };
    assert_eq!(log("5"), log("5"));
    assert_ne!(log("5"), log("6"));
}

/// The picture in the README is a screen of the first command that it names.
#[test]
fn the_picture_in_the_readme_is_current() {
    let directory = tempfile::tempdir().unwrap();
    let (rows, columns) = (28, 92);
    let (stream, _) =
        on_a_terminal(directory.path(), rows, columns, &["rehearse", "--speed", "max"]);
    check_picture("rehearse", until_drawn(&stream, "+00:25:00"), rows, columns);
}

/// What people see on terminals of three widths, with colour and without. A terminal that cannot be
/// redrawn, or whose owner wants no colour, gets a line for each transition.
#[test]
fn the_pictures_of_screens_are_current() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["rehearse", "--speed", "max", "--fault", "harbor=refuse"];
    for columns in [60, 80, 120] {
        let rows = 30;
        let (stream, _) = on_a_terminal(directory.path(), rows, columns, &args);
        let drawn = until_drawn(&stream, "+00:25:00");
        check_picture(&format!("screens/colour-{columns}"), drawn, rows, columns);
        for environment in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            let all = [("TERM", "xterm-256color"), environment];
            let (stream, _) = on_a_terminal_with(directory.path(), &all, rows, columns, &args);
            assert!(!stream.contains(&0x1b), "no command to the terminal with {environment:?}");
            check_picture(&format!("screens/plain-{columns}"), &stream, rows, columns);
        }
    }
}

/// Compares what a terminal shows with a picture in the docs.
fn check_picture(name: &str, stream: &[u8], rows: u16, columns: u16) {
    let mut parser = vt100::Parser::new(nonzero(rows), nonzero(columns), 0);
    parser.process(stream);
    let text: Vec<String> = parser.screen().rows_formatted(0, columns).collect();
    let picture = anstyle_svg::Term::new().render_svg(&text.join("\u{1b}[0m\n"));
    let path = folder(&format!("../../../docs/images/{name}.svg"));
    Assert::new().action_env("SNAPSHOTS").eq(picture, Data::read_from(&path, None).raw());
}

/// An interrupted rehearsal ends as a run does: with what was done.
#[test]
fn an_interrupted_rehearsal_sums_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = tiphys(directory.path());
    command.args(["rehearse", "--speed", "600"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = format!("{first}{rest}{}", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted") && said.contains("this was a rehearsal"), "{said}");
}

/// A rehearsal on a terminal: the screen at some moments of it, and everything at its end.
fn screens(directory: &Path, rows: u16, columns: u16) -> String {
    let args = ["rehearse", "--speed", "max", "--fault", "harbor=refuse"];
    let (stream, code) = on_a_terminal(directory, rows, columns, &args);

    let mut transcript = format!("$ tiphys {}\nexit {code}\n", args.join(" "));
    for moment in ["+00:00:12", "+00:12:00", "+00:25:00"] {
        let screen = rendered(rows, columns, until_drawn(&stream, moment));
        transcript += &format!("--- screen at {moment}\n{screen}\n");
    }
    // High enough for everything to be seen at once.
    transcript + &format!("--- all of it at the end\n{}\n", rendered(2000, columns, &stream))
}

/// What a terminal shows after it has been sent a stream.
fn rendered(rows: u16, columns: u16, stream: &[u8]) -> String {
    let mut parser = vt100::Parser::new(nonzero(rows), nonzero(columns), 0);
    parser.process(stream);
    parser.screen().contents()
}

/// The stream up to the drawing that follows the one with this headline.
fn until_drawn<'a>(stream: &'a [u8], headline: &str) -> &'a [u8] {
    let find = |from: usize, what: &[u8]| {
        stream[from..].windows(what.len()).position(|window| window == what).map(|at| from + at)
    };
    let drawn = find(0, format!("{headline} deploy reference").as_bytes()).expect("it is drawn");
    // The next thing begins with the cursor moving up.
    let next = (drawn..stream.len()).find(|at| stream[*at..].starts_with(b"A\x1b[J"));
    let next = next.map_or(stream.len(), |at| {
        stream[..at].iter().rposition(|byte| *byte == 0x1b).unwrap_or(at)
    });
    &stream[..next]
}
