//! The pure crates stay pure: no disk, network, clock, threads, randomness, environment, output
//! or async in their sources, and no dependency that could bring them in.
//!
//! The scanner reads tokens, not types. It stops slips, not somebody who wants to get around it;
//! the list of dependencies does more of the work.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that hold the decisions. Those that do not exist yet are passed over.
const PURE: [&str; 5] = ["model", "spec", "plan", "run", "sim"];

/// What pure crates may depend on, and why each is harmless.
const DEPENDENCIES: [(&str, &str); 13] = [
    ("cel", "expressions over values that it is given; without `chrono` it has no clock"),
    ("granit-parser", "YAML grammar over a string that it is given"),
    ("jiff", "calendar arithmetic; without its `std` feature it has no clock"),
    ("schemars", "schema values from types; only `spec` uses it"),
    ("serde", "traits and derives"),
    ("serde_json", "writes to whatever writer it is given"),
    ("sha2", "arithmetic on bytes"),
    ("strsim", "arithmetic on two strings"),
    ("thiserror", "derives `Display` and `Error`"),
    ("tiphys-model", "pure itself"),
    ("tiphys-plan", "pure itself"),
    ("tiphys-run", "pure itself"),
    ("tiphys-spec", "pure itself"),
];

/// Modules of `std` that reach outside.
const MODULES: [&[&str]; 15] = [
    &["env"],
    &["fs"],
    &["net"],
    &["os"],
    &["process"],
    &["thread"],
    &["time", "Instant"],
    &["time", "SystemTime"],
    &["collections", "HashMap"],
    &["collections", "HashSet"],
    &["collections", "hash_map"],
    &["collections", "hash_set"],
    &["io", "stdin"],
    &["io", "stdout"],
    &["io", "stderr"],
];
const CRATES: [&str; 2] = ["tokio", "rand"];
const KEYWORDS: [&str; 2] = ["async", "await"];
const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

#[test]
fn pure_crates_stay_pure() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut scanned = Vec::new();
    for name in PURE {
        let manifest = crates.join(name).join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else { continue };
        scanned.push(name);
        let refused = refused_dependencies(&text);
        found.extend(refused.into_iter().map(|place| format!("crates/{name}/Cargo.toml:{place}")));
        let sources = rust_files(&crates.join(name).join("src"));
        assert!(!sources.is_empty(), "crates/{name} has no sources");
        for path in sources {
            let shown = path.strip_prefix(&crates).unwrap().display();
            let impure = impurities(&fs::read_to_string(&path).unwrap());
            found.extend(impure.into_iter().map(|place| format!("crates/{shown}:{place}")));
        }
    }
    assert!(scanned.starts_with(&["model", "spec", "plan"]), "only {scanned:?} were found");
    assert!(found.is_empty(), "not pure:\n{}", found.join("\n"));
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory is readable") {
        let path = entry.expect("its entries are readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// `LINE: NAME` of each dependency that is not on the list. Dependencies of tests are free.
fn refused_dependencies(manifest: &str) -> Vec<String> {
    let mut refused = Vec::new();
    let mut table = "";
    for (number, line) in (1..).zip(manifest.lines()) {
        let line = line.trim();
        let name = if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']').trim();
            // `[dependencies.NAME]`
            let at = table.find("dependencies.").map(|at| (at, at + "dependencies.".len()));
            at.filter(|(at, _)| !table[..*at].ends_with("dev-")).map(|(_, name)| &table[name..])
        } else {
            let entry = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
            let name = line.split(['=', '.']).next().map(str::trim);
            name.filter(|name| entry && !name.is_empty() && !name.starts_with('#'))
        };
        if let Some(name) = name.map(|name| name.trim_matches('"'))
            && !DEPENDENCIES.iter().any(|(allowed, _)| *allowed == name)
        {
            refused.push(format!("{number}: the dependency {name} is not on the list"));
        }
    }
    refused
}

/// `LINE: WHAT` of each use of something impure.
fn impurities(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut leaves = Vec::new();
        let end = path_tree(&tokens, at, &[], &mut leaves);
        let called_as_macro = text(end) == "!";
        for Leaf { path, line } in leaves {
            if is_impure(&path, called_as_macro) {
                found.push(format!("{line}: {}", path.join("::")));
            }
        }
        at = end.max(at + 1);
    }
    found
}

fn is_impure(path: &[&str], called_as_macro: bool) -> bool {
    // `use ::std` reads as one path.
    let path = path.strip_prefix(&["use"]).unwrap_or(path);
    let [first, rest @ ..] = path else { return false };
    let std = ["std", "core", "alloc"].contains(first);
    // After `use std::time`, `time::Instant` means the same.
    let imported =
        |module: &[&str]| module.len() > 1 && path.windows(module.len()).any(|part| part == module);
    // Everything at once would hide what is used of it.
    let whole = ["time", "collections", "io"];
    let glob = std && (rest == ["*"] || matches!(rest, [m, "*"] if whole.contains(m)));
    let module = MODULES.iter().any(|module| (std && rest.starts_with(module)) || imported(module));
    (module && !called_as_macro)
        || glob
        || (CRATES.contains(first) && !rest.is_empty())
        || KEYWORDS.contains(first)
        || (MACROS.contains(&path[path.len() - 1]) && called_as_macro)
}

struct Leaf<'s> {
    path: Vec<&'s str>,
    line: usize,
}

/// Reads `a::b` or `a::{b, c::d}` from `at` on. Returns where it ends: `at` if there is none.
fn path_tree<'s>(
    tokens: &[Token<'s>],
    mut at: usize,
    prefix: &[&'s str],
    leaves: &mut Vec<Leaf<'s>>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut path = prefix.to_vec();
    let Some(mut line) = tokens.get(at).map(|token| token.line) else { return at };
    loop {
        let segment = text(at);
        let segment = segment.strip_prefix("r#").unwrap_or(segment);
        if segment == "{" && !path.is_empty() {
            at += 1;
            while !["}", ""].contains(&text(at)) {
                at = path_tree(tokens, at, &path, leaves);
                // `as other`, and whatever else is no path.
                while !["}", ",", ""].contains(&text(at)) {
                    at += 1;
                }
                at += usize::from(text(at) == ",");
            }
            return at + 1;
        }
        let name = segment.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let glob = segment == "*" && !path.is_empty();
        if !name && !glob {
            break;
        }
        // `std::fs::{self}` is `std::fs`.
        if segment != "self" || path.is_empty() {
            path.push(segment);
        }
        line = tokens[at].line;
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if path.len() > prefix.len() || (!prefix.is_empty() && text(at.wrapping_sub(1)) == "self") {
        leaves.push(Leaf { path, line });
    }
    at
}

#[derive(Debug, Clone, Copy)]
struct Token<'s> {
    text: &'s str,
    line: usize,
}

/// Names, `::` and single characters; comments and literals are left out.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let (length, kept) = if let Some(length) = skipped(rest) {
            (length, false)
        } else if rest.starts_with("::") {
            (2, true)
        } else if word(first) {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            let end = rest[raw..].find(|c| !word(c)).map_or(rest.len(), |at| raw + at);
            (end, true)
        } else {
            (first.len_utf8(), !first.is_whitespace())
        };
        let (text, tail) = rest.split_at(length);
        if kept {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = tail;
    }
    tokens
}

/// The length of the comment or literal that the text begins with.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        let mut depth = 0;
        for (at, _) in text.char_indices() {
            match text.as_bytes()[at..].get(..2) {
                Some(b"/*") => depth += 1,
                Some(b"*/") if depth == 1 => return Some(at + 2),
                Some(b"*/") => depth -= 1,
                _ => {}
            }
        }
        return Some(text.len());
    }
    let prefix = ["br", "cr", "r", "b", "c"].iter().find(|prefix| {
        let rest = text.strip_prefix(**prefix).unwrap_or_default().trim_start_matches('#');
        rest.starts_with('"') && (prefix.ends_with('r') || text[prefix.len()..].starts_with('"'))
    });
    let start = prefix.map_or(0, |prefix| prefix.len());
    if prefix.is_some_and(|prefix| prefix.ends_with('r')) {
        let hashes = text[start..].len() - text[start..].trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let body = start + hashes + 1;
        return Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()));
    }
    let quote = text[start..].chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let body = &text[start + 1..];
    // A lifetime has no closing quote: `'a` and then something else.
    if quote == '\'' && !body.starts_with('\\') && body.chars().nth(1) != Some('\'') {
        return None;
    }
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(start + 1 + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

#[test]
fn the_scanner_finds_what_reaches_outside() {
    let cases = [
        ("fn f() { std::fs::read(p); }", "1: std::fs::read"),
        ("use std::{fs, io};", "1: std::fs"),
        ("use std::{\n    fmt,\n    net::{TcpStream, UdpSocket},\n};", "3: std::net::TcpStream"),
        ("use std::fs::{self as disk};", "1: std::fs"),
        ("use ::std::env::var;", "1: use::std::env::var"),
        ("use std::thread;", "1: std::thread"),
        ("use std::process::Command;", "1: std::process::Command"),
        ("use std::time::{Duration, Instant};", "1: std::time::Instant"),
        ("use std::time;\nfn f() { time::SystemTime::now(); }", "2: time::SystemTime::now"),
        ("use std::time::*;", "1: std::time::*"),
        ("use std::*;", "1: std::*"),
        ("type M = std::collections::HashMap<A, B>;", "1: std::collections::HashMap"),
        ("use std::collections::{BTreeMap, hash_map::Entry};", "1: std::collections::hash_map"),
        ("use std::collections::HashSet as Set;", "1: std::collections::HashSet"),
        ("async fn f() {}", "1: async"),
        ("fn f() { g().await }", "1: await"),
        ("fn f() { tokio::spawn(g()) }", "1: tokio::spawn"),
        ("use rand::Rng;", "1: rand::Rng"),
        ("fn f() { println!(\"x\") }", "1: println"),
        ("fn f() { std::eprintln!(\"x\") }", "1: std::eprintln"),
        ("fn f(c: char) { if c == '\"' { std::fs::read(p); } }", "1: std::fs::read"),
        ("fn f<'a>(x: &'a str) { let _ = r#\"\"\"#; std::fs::read(x); }", "1: std::fs::read"),
        ("/* /* */ */ use std::fs;", "1: std::fs"),
    ];
    for (source, first) in cases {
        let found = impurities(source);
        assert!(found.first().is_some_and(|f| f.starts_with(first)), "{source}: {found:?}");
    }
}

#[test]
fn the_scanner_leaves_the_rest_alone() {
    let source = r##"
        //! No std::fs, no rand::random(), no async fn here.
        /* std::net::TcpStream, println!("x") */
        use std::{fmt, io::{self, Write}, time::Duration};
        use std::collections::{BTreeMap, BTreeSet, VecDeque};
        use crate::{fs, process::Instant};
        const VERSION: &str = env!("CARGO_PKG_VERSION");
        const OTHER: Option<&str> = std::option_env!("X");
        const HELP: &str = "std::fs::read \" println!(";
        const RAW: &str = r#"use std::env; " tokio::spawn"#;
        fn f<'a>(rand: &'a str, c: char) -> io::Result<()> {
            let found = c == '\'' || c == '"';
            writeln!(io::sink(), "{rand}{found}")
        }
    "##;
    assert_eq!(impurities(source), Vec::<String>::new());
}

#[test]
fn dependencies_outside_the_list_are_refused() {
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nserde.workspace = true\n\
        # tokio = \"1\"\ntokio = { version = \"1\" }\n\"rand\" = \"0.9\"\n\n\
        [dev-dependencies]\nproptest = \"1\"\n\n[dev-dependencies.insta]\nversion = \"1\"\n\n\
        [dependencies.reqwest]\nversion = \"1\"\n\n[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n\n\
        [build-dependencies]\ncc = \"1\"\n\n[lints]\nworkspace = true\n";
    let names: Vec<String> = refused_dependencies(manifest);
    let line = |number: u32, name| format!("{number}: the dependency {name} is not on the list");
    let expected =
        [line(7, "tokio"), line(8, "rand"), line(16, "reqwest"), line(20, "libc"), line(23, "cc")];
    assert_eq!(names, expected);
}
