//! The audit log of the lab's API server: who wrote what, in which order.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::LabError;

/// One finished request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub verb: String,
    pub user: User,
    #[serde(default)]
    pub user_agent: String,
    pub object_ref: Option<ObjectRef>,
    pub response_status: Option<ResponseStatus>,
    /// The object as it was afterwards, where the policy keeps it.
    pub response_object: Option<Value>,
    pub request_object: Option<Value>,
    pub request_received_timestamp: String,
    pub stage_timestamp: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct User {
    /// Empty if the request ended before it was known who made it.
    #[serde(default)]
    pub username: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub api_group: String,
    pub subresource: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ResponseStatus {
    pub code: u16,
}

impl Record {
    /// The version that the object had afterwards: the order of writes.
    #[must_use]
    pub fn resource_version(&self) -> Option<u64> {
        self.response_object.as_ref()?.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
    }

    /// Whether it changed something, or tried to.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.response_status.as_ref().is_some_and(|status| (200..300).contains(&status.code))
    }

    #[must_use]
    pub fn is_about(&self, group: &str, resource: &str) -> bool {
        self.object_ref.as_ref().is_some_and(|o| o.api_group == group && o.resource == resource)
    }
}

/// Reads a log from its beginning.
pub fn read(path: &Path) -> Result<Vec<Record>, LabError> {
    read_from(path, 0)
}

/// How long the log is now, with all that the API server has put aside: a place to read from
/// later.
pub fn length(path: &Path) -> Result<u64, LabError> {
    let length = |file: &PathBuf| {
        fs::metadata(file).map(|file| file.len()).map_err(LabError::file("could not read", file))
    };
    files(path)?.iter().map(length).sum()
}

/// Reads a log from a place in it. A line that is being written may be cut short: the last one may
/// be broken.
pub fn read_from(path: &Path, place: u64) -> Result<Vec<Record>, LabError> {
    let mut skip = place;
    let mut text: Box<dyn Read> = Box::new(io::empty());
    for file in files(path)? {
        let failed = || LabError::file("could not read", &file);
        let mut opened = File::open(&file).map_err(failed())?;
        let length = opened.metadata().map_err(failed())?.len();
        let skipped = skip.min(length);
        opened.seek(SeekFrom::Start(skipped)).map_err(failed())?;
        skip -= skipped;
        text = Box::new(text.chain(opened));
    }
    let mut records = Vec::new();
    let mut broken: Option<(usize, serde_json::Error)> = None;
    for (number, line) in BufReader::new(text).lines().enumerate() {
        let line = line.map_err(LabError::file("could not read", path))?;
        if let Some((number, error)) = broken {
            return Err(LabError::Other(format!("line {} of the audit log: {error}", number + 1)));
        }
        match serde_json::from_str(&line) {
            Ok(record) => records.push(record),
            Err(error) => broken = Some((number, error)),
        }
    }
    Ok(records)
}

/// The log and, before it, what was put aside when it had grown large, oldest first.
fn files(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let entries = fs::read_dir(folder).map_err(LabError::file("could not list", folder))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with(&format!("{stem}-")) && file.extension() == path.extension()
        })
        .collect();
    // Their names end with the time.
    files.sort();
    files.push(path.to_owned());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","verb":"patch","user":{"username":"admin"},"userAgent":"tiphys/0","objectRef":{"resource":"applications","namespace":"argocd","name":"vault","apiGroup":"argoproj.io"},"responseStatus":{"code":200},"responseObject":{"metadata":{"resourceVersion":"42"}},"requestReceivedTimestamp":"2026-11-15T00:00:00.000001Z","stageTimestamp":"2026-11-15T00:00:00.000002Z"}"#;

    #[test]
    fn records_tell_who_wrote_what_in_which_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, format!("{LINE}\n{{\"verb\":\"pa")).unwrap();
        let records = read(&path).unwrap();
        assert_eq!(records.len(), 1);
        let record = &records[0];
        assert_eq!(record.resource_version(), Some(42));
        assert!(record.is_write() && record.succeeded());
        assert!(record.is_about("argoproj.io", "applications"));
        assert_eq!(record.object_ref.as_ref().map(|o| o.name.as_str()), Some("vault"));
    }

    #[test]
    fn a_request_that_ended_too_early_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, LINE.replace("\"username\":\"admin\"", "") + "\n").unwrap();
        assert_eq!(read(&path).unwrap()[0].user.username, "");
    }

    #[test]
    fn what_was_put_aside_is_read_first_and_a_place_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let line = |verb: &str| LINE.replace("patch", verb) + "\n";
        fs::write(&path, line("create")).unwrap();
        let place = length(&path).unwrap();
        fs::rename(&path, folder.path().join("audit-2026-11-15.log")).unwrap();
        fs::write(&path, line("update") + &line("delete")).unwrap();
        let verbs = |from: u64| {
            let records = read_from(&path, from).unwrap();
            records.into_iter().map(|record| record.verb).collect::<Vec<_>>()
        };
        assert_eq!(verbs(0), ["create", "update", "delete"]);
        assert_eq!(verbs(place), ["update", "delete"]);
        assert_eq!(verbs(length(&path).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_broken_line_in_the_middle_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, format!("{{\n{LINE}\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().starts_with("line 1 of the audit log"));
    }
}
