//! Every problem that a platform can have, as a person sees it.
//!
//! Each folder in `diagnostics/` is a situation: a file `platform.yaml`, a directory of files, a
//! directory `applications` for `--from-applications`, or `waves` with `--edges-from-waves` as well. `NAME.out` is what the program says.
//! Situations that cannot be checked in are made here.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Ran, compare, folder, tiphys};

const MEMORY_KIB: u32 = 128 * 1024;
/// A refusal takes milliseconds; this only has to tell it from work that explodes.
const LONGEST: Duration = Duration::from_secs(2);

/// Makes a file in a directory, and gives what to say on the command line.
type Make = fn(&Path) -> &'static str;

const MADE: [(&str, Make); 14] = [
    ("made-absent", |_| "plan -f absent"),
    ("made-absent-in-a-repository", |_| "plan -f https://git.example/platform.git//root@main"),
    ("made-absent-applications", |_| "plan --from-applications absent"),
    ("made-dangling-link", |at| {
        link(&at.join("link.yaml"));
        "plan -f link.yaml"
    }),
    ("made-dangling-default", |at| {
        link(&at.join("platform.yaml"));
        "plan"
    }),
    ("made-directory-without-files", |at| {
        fs::create_dir_all(at.join("empty/sub.yaml")).unwrap();
        fs::write(at.join("empty/.hidden.yaml"), "a").unwrap();
        fs::write(at.join("empty/notes.txt"), "a").unwrap();
        "plan -f empty"
    }),
    ("made-below-a-file", |at| {
        fs::write(at.join("file"), "a").unwrap();
        "plan -f file/platform.yaml"
    }),
    ("made-binary-file", |at| {
        fs::write(at.join("binary"), b"\x7fELF\x02\x01\x01\0\0").unwrap();
        "plan -f binary"
    }),
    ("made-not-utf-8", |at| {
        fs::write(at.join("latin-1.yaml"), b"apiVersion: v1\nname: K\xf6ln\n").unwrap();
        "plan -f latin-1.yaml"
    }),
    ("made-utf-16", |at| {
        fs::write(at.join("utf-16.yaml"), b"\xff\xfea\0:\0").unwrap();
        "plan -f utf-16.yaml"
    }),
    ("made-scalar-of-200-mb", |at| {
        sparse(&at.join("large.yaml"), 200_000_000);
        "plan -f large.yaml"
    }),
    ("made-waves-with-too-many-edges", |at| {
        let head = "apiVersion: argoproj.io/v1alpha1, kind: Application";
        let application = |number: u32| {
            let wave = format!("{{argocd.argoproj.io/sync-wave: \"{}\"}}", number % 2);
            format!("---\n{{{head}, metadata: {{name: a{number}, annotations: {wave}}}}}\n")
        };
        let all: String = (0..2002).map(application).collect();
        fs::write(at.join("applications.yaml"), all).unwrap();
        "plan --from-applications applications.yaml --edges-from-waves"
    }),
    ("made-nested-20000-deep-in-flow-style", |at| {
        fs::write(at.join("flow.yaml"), "[".repeat(20_000)).unwrap();
        "plan -f flow.yaml"
    }),
    ("made-nested-20000-deep-in-block-style", |at| {
        fs::write(at.join("block.yaml"), "- ".repeat(20_000)).unwrap();
        "plan -f block.yaml"
    }),
];

fn link(at: &Path) {
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere.yaml", at).unwrap();
    #[cfg(windows)]
    std::os::windows::fs::symlink_file("nowhere.yaml", at).unwrap();
}

/// A file of zeros that takes no room on the disk.
fn sparse(at: &Path, bytes: u64) {
    File::create(at).unwrap().set_len(bytes).unwrap();
}

/// The program in a directory, with a limit on its address space, in KiB.
///
/// A process never uses more memory than it has addresses: if it ends as it should, it stayed
/// below. Where there is no such limit, the program runs without.
fn limited(memory: u32, directory: &Path) -> Command {
    if !cfg!(target_os = "linux") {
        return tiphys(directory);
    }
    let script = format!("ulimit -v {memory} && exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_tiphys")]);
    command.env_clear().current_dir(directory);
    command
}

fn run(memory: u32, directory: &Path, args: &str) -> Ran {
    let output = limited(memory, directory).args(args.split(' ')).output().unwrap();
    Ran::new(&format!("tiphys {args}"), &output)
}

fn checked_in(situation: &Path, name: &str) -> String {
    if situation.join("applications").is_dir() {
        format!("plan --from-applications {name}/applications")
    } else if situation.join("waves").is_dir() {
        format!("plan --from-applications {name}/waves --edges-from-waves")
    } else if situation.join("platform.yaml").exists() {
        format!("plan -f {name}/platform.yaml")
    } else {
        format!("plan -f {name}")
    }
}

#[test]
fn every_problem_is_explained_with_exit_3_within_two_seconds_and_128_mib() {
    let folder = folder("diagnostics");
    let mut transcripts = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut refuse = |name: &str, directory: &Path, args: &str| {
        let begin = Instant::now();
        let ran = run(MEMORY_KIB, directory, args);
        let took = begin.elapsed();
        if ran.code != Some(3) || took > LONGEST {
            wrong.push(format!("{name}: {:?} after {took:?}", ran.code));
        }
        transcripts.insert(name.to_owned(), ran);
    };
    for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            refuse(&name, &folder, &checked_in(&entry.path(), &name));
        }
    }
    for (name, make) in MADE {
        let directory = tempfile::tempdir().unwrap();
        refuse(name, directory.path(), make(directory.path()));
    }
    compare(&folder, &transcripts);
    assert_eq!(wrong, Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_on_memory_is_real() {
    let directory = tempfile::tempdir().unwrap();
    // Within the limit of a file, so it is read, which needs memory.
    sparse(&directory.path().join("large.yaml"), 60_000_000);
    let enough = run(MEMORY_KIB, directory.path(), "plan -f large.yaml");
    let little = run(MEMORY_KIB / 4, directory.path(), "plan -f large.yaml");
    let not_text = "error: the file is not a text file";
    let said = [enough, little].map(|ran| ran.transcript.contains(not_text));
    assert_eq!(said, [true, false]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end_is_refused_when_it_has_said_too_much() {
    // A buffer that grows needs more addresses than memory.
    let ran = run(2 * MEMORY_KIB, Path::new("/"), "plan -f /dev/zero");
    let refusal =
        "exit 3\n--- stdout\n--- stderr\nerror: the platform file is larger than 64 MiB\n";
    assert_eq!((ran.code, ran.transcript.contains(refusal)), (Some(3), true), "{}", ran.transcript);
}

#[test]
fn a_hundred_problems_are_shown_and_the_rest_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let edges: String = (0..105).map(|at| format!("x{at}, ")).collect();
    let text = format!(
        "{{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {{name: p}}, spec: \
         {{stacks: [{{name: s, apps: [{{name: a, dependsOn: [{edges}]}}]}}]}}}}"
    );
    fs::write(directory.path().join("platform.yaml"), text).unwrap();
    let transcript = run(MEMORY_KIB, directory.path(), "plan").transcript;
    let errors = transcript.lines().filter(|line| line.starts_with("error: ")).count();
    let last = transcript.lines().last();
    assert_eq!((errors, last), (100, Some("100 problems shown, and 5 more")));
}

/// The first string literal of every statement in `spec` that makes a diagnostic, cut at what is
/// filled in: its title, or its label where the title is put together elsewhere.
fn literals(source: &str) -> Vec<String> {
    let production = source.split("#[cfg(test)]").next().unwrap_or_default();
    let statements = ["Diagnostic::new(", "let title ="]
        .iter()
        .flat_map(|start| production.split(start).skip(1))
        .filter_map(|rest| rest.split(';').next());
    let literals = statements.filter_map(|statement| statement.split('"').nth(1));
    let outside_braces = |literal: &str| -> Vec<String> {
        literal
            .split('{')
            .filter_map(|part| part.split('}').next_back())
            .map(str::to_owned)
            .collect()
    };
    literals.flat_map(outside_braces).collect()
}

#[test]
fn every_diagnostic_of_the_parser_is_in_a_snapshot() {
    let snapshots: String = fs::read_dir(folder("diagnostics"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "out"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/src")];
    let mut seen = 0;
    let mut unseen = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // What is short occurs anywhere, and proves nothing.
            let literals = literals(&fs::read_to_string(&path).unwrap());
            for literal in literals.into_iter().filter(|literal| literal.trim().len() > 8) {
                seen += 1;
                if !snapshots.contains(&literal) {
                    unseen.push(format!("{}: {literal}", path.display()));
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} were found: do they look different now?");
    assert_eq!(unseen, Vec::<String>::new());
}
