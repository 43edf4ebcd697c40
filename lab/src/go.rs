//! The Go toolchain that the lab builds with.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::LabError;
use crate::{command, packages};

/// A version of Go, such as 1.25.5.
type Version = Vec<u32>;

/// Refuses a machine without a Go that can build the modules. It is not installed: a Debian's own
/// may be years too old, and fails late with messages about something else.
pub(crate) fn require(modules: &Path) -> Result<(), LabError> {
    let (folder, needed) = newest_needed(modules)?;
    let shown = shown(&needed);
    let advice = "install it from https://go.dev/dl and put it on the PATH";
    if packages::which("go").is_none() {
        return Err(LabError::Other(format!(
            "the lab needs Go {shown} or newer, and there is no `go` on the PATH: {advice}"
        )));
    }
    // Asked where it is needed: Go 1.21 and later fetch a newer toolchain by themselves.
    let found = command::run(Command::new("go").current_dir(folder).args(["env", "GOVERSION"]))?;
    if version(found.trim()).is_some_and(|version| version >= needed) {
        return Ok(());
    }
    let found = found.trim();
    Err(LabError::Other(format!(
        "the lab needs Go {shown} or newer, but the `go` on the PATH is {found}: {advice}"
    )))
}

/// The module that asks for the newest Go, and what it asks for.
fn newest_needed(modules: &Path) -> Result<(std::path::PathBuf, Version), LabError> {
    let failed = || LabError::file("could not read", modules);
    let mut newest = (modules.to_owned(), Version::new());
    for entry in fs::read_dir(modules).map_err(failed())? {
        let folder = entry.map_err(failed())?.path();
        let file = folder.join("go.mod");
        let text = fs::read_to_string(&file).map_err(LabError::file("could not read", &file))?;
        if let Some(needed) = needed(&text).filter(|needed| *needed > newest.1) {
            newest = (folder, needed);
        }
    }
    Ok(newest)
}

/// What a `go.mod` asks for: its line `go 1.25.5`.
fn needed(text: &str) -> Option<Version> {
    text.lines().find_map(|line| version(line.trim().strip_prefix("go ")?))
}

/// Reads `go1.26.8`, `1.25.5` and `1.24`; what follows a blank or a letter is left off.
fn version(text: &str) -> Option<Version> {
    let numbers = text.trim().trim_start_matches("go");
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
    numbers[..end].split('.').map(|number| number.parse().ok()).collect()
}

fn shown(version: &[u32]) -> String {
    version.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version("go1.26.8") > version("1.25.5"));
        assert!(version("go1.9") < version("go1.19.8"));
        assert_eq!(version("go1.26rc1"), Some(vec![1, 26]));
        assert_eq!(version("devel"), None);
    }

    #[test]
    fn the_modules_of_the_lab_say_what_they_need() {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules");
        let (folder, needed) = newest_needed(&modules).unwrap();
        assert!(folder.join("go.mod").exists());
        assert!(needed >= vec![1, 24], "{needed:?}");
        assert_eq!(super::needed("module x\n\ngo 1.25.5\n"), Some(vec![1, 25, 5]));
    }
}
