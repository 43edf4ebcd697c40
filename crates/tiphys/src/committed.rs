//! Whether a platform file is what Git has: who deploys should deploy what others can see.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tiphys_model::{Exit, Explain, Explanation};

use crate::input;

/// A platform file that is not what is deployed, as far as anybody can tell.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub(crate) enum CommittedError {
    Differs {
        files: Vec<String>,
        revision: String,
    },
    /// Git has another one by now.
    Moved {
        revision: String,
    },
    NoRepository {
        file: PathBuf,
        git: String,
    },
    NoCommit {
        file: PathBuf,
        revision: String,
    },
    NoPath {
        file: PathBuf,
        source: io::Error,
    },
    Git {
        file: PathBuf,
        git: String,
    },
    Stdin,
}

impl Explain for CommittedError {
    fn explain(&self) -> Explanation {
        let unknown = |file: &Path, why: String| {
            let what = format!("cannot compare {} with Git", file.display());
            Explanation::new(Exit::Configuration, what, why).hint(
                "deploy from a clone of the platform's repository, or use --allow-uncommitted",
            )
        };
        match self {
            CommittedError::Differs { files, revision } => Explanation::new(
                Exit::Configuration,
                "the platform file differs from Git",
                format!("{} differs from the deployed commit {revision}", files.join(", ")),
            )
            .hint("commit and push it, check the commit out, or use --allow-uncommitted"),
            CommittedError::Moved { revision } => Explanation::new(
                Exit::Configuration,
                "the platform file has just changed in Git",
                format!("the root app has another one at {revision}"),
            )
            .hint("run the same command again"),
            CommittedError::NoRepository { file, git } => {
                unknown(file, format!("it is not in a Git repository: {git}"))
            }
            CommittedError::NoCommit { file, revision } => unknown(
                file,
                format!("the local repository does not have the deployed commit {revision}"),
            )
            .hint("run `git fetch`, or use --allow-uncommitted"),
            CommittedError::NoPath { file, source } => unknown(file, source.to_string()),
            CommittedError::Git { file, git } => unknown(file, git.clone()),
            CommittedError::Stdin => {
                unknown(Path::new("the platform"), "it was read from stdin".to_owned())
            }
        }
    }
}

/// Compares a file, or the files of a directory, with a commit of the repository that it is in.
pub(crate) fn check(platform: &Path, revision: &str) -> Result<(), CommittedError> {
    if input::is_stdin(platform) {
        return Err(CommittedError::Stdin);
    }
    let file = || platform.to_owned();
    let failed = |git| CommittedError::Git { file: file(), git };
    let folder = if platform.is_dir() { platform } else { parent(platform) };
    let root = git(folder, &["rev-parse", "--show-toplevel"])
        .map_err(|git| CommittedError::NoRepository { file: file(), git })?;
    if git(folder, &["cat-file", "-e", &format!("{revision}^{{commit}}")]).is_err() {
        let revision = revision.to_owned();
        return Err(CommittedError::NoCommit { file: file(), revision });
    }
    let root = PathBuf::from(String::from_utf8_lossy(&root).trim());
    let full = platform
        .canonicalize()
        .map_err(|source| CommittedError::NoPath { file: file(), source })?;
    let path = full.strip_prefix(&root).unwrap_or(&full).display().to_string();
    let path = if path.is_empty() { ".".to_owned() } else { path };
    // With one commit, the work tree is compared with it; files that Git does not know are not
    // in the comparison.
    let changed = git(&root, &["diff", "--name-only", revision, "--", &path]).map_err(failed)?;
    let untracked = git(&root, &["ls-files", "--others", "--", &path]).map_err(failed)?;
    let names = [changed, untracked].concat();
    let names = String::from_utf8_lossy(&names);
    let names: Vec<&str> = names.lines().filter(|name| is_platform_file(name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let files = names.into_iter().map(str::to_owned).collect();
    Err(CommittedError::Differs { files, revision: revision.to_owned() })
}

fn is_platform_file(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn git(folder: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output();
    let output = output.map_err(|error| format!("cannot run `git`: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn repository() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| git(folder.path(), args).unwrap();
        run(&["init", "-q"]);
        run(&["config", "user.email", "somebody@example.org"]);
        run(&["config", "user.name", "Somebody"]);
        fs::create_dir(folder.path().join("env")).unwrap();
        fs::write(folder.path().join("env/platform.yaml"), "a\n").unwrap();
        run(&["add", "."]);
        run(&["commit", "-q", "-m", "first"]);
        let head = String::from_utf8(run(&["rev-parse", "HEAD"])).unwrap();
        (folder, head.trim().to_owned())
    }

    #[test]
    fn what_is_committed_passes_and_what_was_changed_does_not() {
        let (folder, head) = repository();
        let file = folder.path().join("env/platform.yaml");
        let directory = folder.path().join("env");
        assert!(check(&file, &head).is_ok());
        assert!(check(&directory, &head).is_ok());
        fs::write(directory.join("notes.txt"), "x").unwrap();
        assert!(check(&directory, &head).is_ok(), "no platform file");
        fs::write(directory.join("more.yaml"), "b\n").unwrap();
        assert!(check(&file, &head).is_ok(), "another file");
        assert!(check(&directory, &head).unwrap_err().to_string().contains("env/more.yaml"));
        fs::write(&file, "changed\n").unwrap();
        assert!(check(&file, &head).unwrap_err().to_string().contains("env/platform.yaml"));
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let (folder, _) = repository();
        let file = folder.path().join("env/platform.yaml");
        let other = "0123456789012345678901234567890123456789";
        assert!(matches!(check(&file, other), Err(CommittedError::NoCommit { .. })));
        let alone = tempfile::tempdir().unwrap();
        let file = alone.path().join("platform.yaml");
        fs::write(&file, "a\n").unwrap();
        assert!(matches!(check(&file, other), Err(CommittedError::NoRepository { .. })));
    }
}
