//! Repositories beside the platform's own: a sub-folder each, with a file for each field.

use std::fs;
use std::io;
use std::path::Path;

use super::{Git, MountedError, git, text};

/// How Argo CD reaches a repository of apps or charts, or all of them below a URL.
#[derive(Debug, Clone)]
pub struct Repository {
    /// Of the folder.
    pub name: String,
    pub url: String,
    pub kind: RepositoryKind,
    /// What is behind the URL, in Argo CD's words.
    pub content: String,
    pub proxy: Option<String>,
    pub no_proxy: Option<String>,
    pub git: Git,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryKind {
    One,
    /// All whose URLs begin so.
    Template,
}

impl RepositoryKind {
    /// As Argo CD labels it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RepositoryKind::One => "repository",
            RepositoryKind::Template => "repo-creds",
        }
    }
}

/// Reads the folders in a folder; sorted by name.
pub(super) fn read(folder: &Path) -> Result<Vec<Repository>, MountedError> {
    let unreadable =
        |source: io::Error| MountedError::Unreadable { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut repositories = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A mounted Secret has folders of its own; their names begin with two dots.
        if path.is_dir() && !name.starts_with("..") {
            repositories.push(one(&path, name)?);
        }
    }
    repositories.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(repositories)
}

fn one(folder: &Path, name: String) -> Result<Repository, MountedError> {
    let wrong = |why: String| MountedError::Repository { folder: folder.to_owned(), why };
    let field = |file: &str| -> Result<Option<String>, MountedError> {
        let text = text(&folder.join(file))?.map(|text| text.trim().to_owned());
        Ok(text.filter(|text| !text.is_empty()))
    };
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(label) || name.starts_with('-') || name.ends_with('-') {
        return Err(wrong(
            "its name becomes part of a Secret name: use only lower-case letters, digits and \
             inner `-`"
                .into(),
        ));
    }
    let url =
        field("url")?.ok_or_else(|| wrong("the file `url` is missing or empty".to_owned()))?;
    let kind = match field("secret-type")?.as_deref() {
        None | Some("repository") => RepositoryKind::One,
        Some("repo-creds") => RepositoryKind::Template,
        Some(other) => {
            let expected = "expected `repository` or `repo-creds`";
            return Err(wrong(format!("invalid `secret-type` `{other}`: {expected}")));
        }
    };
    Ok(Repository {
        name,
        url,
        kind,
        content: field("type")?.unwrap_or_else(|| "git".to_owned()),
        proxy: field("proxy")?,
        no_proxy: field("no-proxy")?,
        git: git(folder)?,
    })
}
