//! One repository on a Git server, written commit by commit.

use std::fmt;
use std::fs;
use std::path::{Component, Path};
use std::process::Command;

use tempfile::TempDir;

use super::{Credentials, GitServer};
use crate::command;
use crate::error::LabError;
use crate::repository::Files;

const BRANCH: &str = "main";

/// A repository with one branch, `main`. Several of these may write to the same one: each commit
/// begins with what the server has.
pub struct Repository {
    server: GitServer,
    name: String,
    work: TempDir,
}

/// The SHA of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(String);

impl Revision {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Repository {
    /// Makes an empty repository, or opens the one that is there.
    pub fn create(server: &GitServer, name: &str) -> Result<Self, LabError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(LabError::Other(format!(
                "{name:?} is no name for a repository: use letters, digits, '-' and '_'"
            )));
        }
        if let Some(folder) = &server.folder {
            let bare = folder.join(format!("{name}.git"));
            command::run(server.git().args(["init", "-q", "--bare", "-b", BRANCH]).arg(bare))?;
        }
        let work = TempDir::with_prefix("tiphys-lab-git-")
            .map_err(LabError::file("could not make a folder in", std::env::temp_dir()))?;
        let repository = Repository { server: server.clone(), name: name.to_owned(), work };
        repository.run(&["init", "-q", "-b", BRANCH])?;
        repository.run(&["remote", "add", "origin", &repository.url()])?;
        Ok(repository)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// For Argo CD's repository Secret.
    pub fn credentials(&self) -> Result<Credentials, LabError> {
        self.server.credentials(&self.name)
    }

    /// The last commit of `main` on the server, if there is one.
    pub fn head(&self) -> Result<Option<Revision>, LabError> {
        let listed = self.run(&["ls-remote", "origin", &format!("refs/heads/{BRANCH}")])?;
        Ok(listed.split_whitespace().next().map(|sha| Revision(sha.to_owned())))
    }

    /// A commit after which `main` has these files and no others.
    pub fn commit(&self, files: &Files, message: &str) -> Result<Revision, LabError> {
        self.update()?;
        self.run(&["rm", "-rfq", "--ignore-unmatch", "."])?;
        for (path, text) in files {
            self.write(path, text)?;
        }
        self.push(message)
    }

    /// A commit that changes some files: to a text, or away (`None`).
    pub fn change(
        &self,
        changes: &[(&str, Option<&str>)],
        message: &str,
    ) -> Result<Revision, LabError> {
        self.update()?;
        for (path, text) in changes {
            match text {
                Some(text) => self.write(path, text)?,
                None => self.run(&["rm", "-q", "--", path]).map(|_| ())?,
            }
        }
        self.push(message)
    }

    /// Lets a tag point to the last commit, wherever it was before.
    pub fn tag(&self, name: &str) -> Result<(), LabError> {
        self.update()?;
        self.run(&["push", "-qf", "origin", &format!("HEAD:refs/tags/{name}")]).map(|_| ())
    }

    /// Makes the work tree what the server has.
    fn update(&self) -> Result<(), LabError> {
        if self.head()?.is_some() {
            self.run(&["fetch", "-q", "origin", BRANCH])?;
            self.run(&["reset", "-q", "--hard", "FETCH_HEAD"])?;
        }
        Ok(())
    }

    fn write(&self, path: &str, text: &str) -> Result<(), LabError> {
        let inside = Path::new(path);
        let normal = |part: Component<'_>| matches!(part, Component::Normal(n) if n != ".git");
        if path.is_empty() || !inside.components().all(normal) {
            return Err(LabError::Other(format!("{path:?} is no path inside a repository")));
        }
        let file = self.work.path().join(inside);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)
                .map_err(LabError::file("could not make the folder", parent))?;
        }
        fs::write(&file, text).map_err(LabError::file("could not write", &file))
    }

    fn push(&self, message: &str) -> Result<Revision, LabError> {
        // Also files that somebody's list of ignored files names.
        self.run(&["add", "-A", "-f"])?;
        self.run(&["commit", "-q", "--allow-empty", "-m", message])?;
        self.run(&["push", "-q", "origin", &format!("HEAD:refs/heads/{BRANCH}")])?;
        Ok(Revision(self.run(&["rev-parse", "HEAD"])?.trim().to_owned()))
    }

    fn run(&self, words: &[&str]) -> Result<String, LabError> {
        let mut git: Command = self.server.git();
        // The same files give the same commit, in whichever lab.
        for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            git.env(date, "2000-01-01T00:00:00Z");
        }
        command::run(git.current_dir(self.work.path()).args(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is a folder: Git takes a path for a URL, so that no port is needed here.
    fn repository(folder: &Path) -> Repository {
        let prefix = folder.display().to_string();
        let mut server = GitServer::other(&prefix, folder.join("key"), folder.join("known_hosts"));
        server.folder = Some(folder.to_owned());
        Repository::create(&server, "platform").unwrap()
    }

    fn listed(repository: &Repository, revision: &Revision) -> Vec<String> {
        let text = repository.run(&["ls-tree", "-r", "--name-only", revision.as_str()]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn files(paths: &[&str]) -> Files {
        paths.iter().map(|path| ((*path).to_owned(), format!("{path}\n"))).collect()
    }

    #[test]
    fn a_commit_replaces_the_tree_and_a_change_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (repository(folder.path()), repository(folder.path()));
        assert_eq!(one.head().unwrap(), None);
        let first = one.commit(&files(&["a/x", "b"]), "first").unwrap();
        assert_eq!(listed(&one, &first), ["a/x", "b"]);
        let second = two.commit(&files(&["b", "c"]), "second").unwrap();
        assert_eq!(listed(&two, &second), ["b", "c"]);
        let third = one.change(&[("d", Some("d")), ("b", None)], "third").unwrap();
        assert_eq!(listed(&one, &third), ["c", "d"]);
        assert_eq!(two.head().unwrap(), Some(third.clone()));
        let same = two.change(&[("d", Some("d"))], "nothing new").unwrap();
        assert_ne!(same, third);
    }

    #[test]
    fn paths_and_names_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        for path in ["../x", "/etc/x", ".git/config", ""] {
            assert!(repository.commit(&files(&[path]), "bad").is_err(), "{path}");
        }
        assert!(Repository::create(&repository.server, "../x").is_err());
    }
}
