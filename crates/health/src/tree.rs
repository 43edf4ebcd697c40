//! Trees of `GROUP/KIND/{health.lua,health_test.yaml,testdata/}`, as Argo CD keeps its scripts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::case::{Case, cases, object_of};
use crate::{Decider, Evaluator, GroupKind, Lookup, Script, Verdict};

const SCRIPT: &str = "health.lua";
const CASES: &str = "health_test.yaml";
/// Argo CD's own tree is four deep. A link in a circle would be deeper.
const DEEPEST: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot use {path}: {why}")]
    Unusable { path: PathBuf, why: String },
    #[error("no {SCRIPT} found in {path}")]
    Empty { path: PathBuf },
}

/// The scripts of a directory.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
    /// By directory below the root: `GROUP/KIND`.
    pub scripts: BTreeMap<String, Script>,
}

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    /// The directory of the script, below the root.
    pub script: String,
    pub input: String,
    pub expected: Outcome,
    pub found: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// No verdict at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeReport {
    pub scripts: usize,
    pub cases: usize,
    /// Scripts that have no cases.
    pub untested: Vec<String>,
    pub differences: Vec<CaseReport>,
}

impl TreeReport {
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }
}

impl Tree {
    /// Reads the scripts below a directory. `open_libs`: as Argo CD runs its own.
    pub fn read(root: &Path, open_libs: bool) -> Result<Self, TreeError> {
        let mut scripts = BTreeMap::new();
        collect(root, root, open_libs, DEEPEST, &mut scripts)?;
        if scripts.is_empty() {
            return Err(TreeError::Empty { path: root.to_owned() });
        }
        Ok(Tree { root: root.to_owned(), scripts })
    }

    /// Runs every case. As in Argo CD, the object chooses its script, by its kind; the directory
    /// decides only if the object would find none.
    pub fn test(&self, evaluator: &mut Evaluator) -> Result<TreeReport, TreeError> {
        let lookup = Lookup { built_in: self.scripts.clone(), ..Lookup::default() };
        let mut report = TreeReport { scripts: self.scripts.len(), ..TreeReport::default() };
        for (directory, script) in &self.scripts {
            let path = self.root.join(directory).join(CASES);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    report.untested.push(directory.clone());
                    continue;
                }
                Err(source) => return Err(TreeError::Unreadable { path, source }),
            };
            let cases = cases(&text)
                .map_err(|error| TreeError::Unusable { path, why: error.to_string() })?;
            for case in cases {
                report.cases += 1;
                let found = self.run(directory, script, &case, &lookup, evaluator)?;
                let expected = Outcome {
                    status: case.status.clone(),
                    message: case.message.clone(),
                    error: None,
                };
                if found != expected {
                    let (script, input) = (directory.clone(), case.input);
                    report.differences.push(CaseReport { script, input, expected, found });
                }
            }
        }
        Ok(report)
    }

    fn run(
        &self,
        directory: &str,
        script: &Script,
        case: &Case,
        lookup: &Lookup,
        evaluator: &mut Evaluator,
    ) -> Result<Outcome, TreeError> {
        let path = self.root.join(directory).join(&case.input);
        let object = object_of(&path).map_err(|why| TreeError::Unusable { path, why })?;
        let script = match GroupKind::of(&object).map(|kind| lookup.decider(&kind)) {
            Some(Decider::BuiltIn(found) | Decider::WildcardBuiltIn { script: found, .. }) => found,
            _ => script,
        };
        Ok(match evaluator.evaluate(script, &object) {
            Ok(verdict) => Outcome::of(&verdict),
            Err(error) => Outcome {
                status: String::new(),
                message: String::new(),
                error: Some(error.to_string()),
            },
        })
    }
}

impl Outcome {
    fn of(verdict: &Verdict) -> Self {
        let status = verdict.word().to_owned();
        Outcome { status, message: verdict.message.clone(), error: None }
    }
}

fn collect(
    root: &Path,
    directory: &Path,
    open_libs: bool,
    deeper: usize,
    scripts: &mut BTreeMap<String, Script>,
) -> Result<(), TreeError> {
    let unreadable = |source| TreeError::Unreadable { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            if deeper > 0 {
                collect(root, &path, open_libs, deeper - 1, scripts)?;
            }
            continue;
        }
        if path.file_name().is_none_or(|name| name != SCRIPT) {
            continue;
        }
        let text = fs::read_to_string(&path)
            .map_err(|source| TreeError::Unreadable { path: path.clone(), source })?;
        let below = directory.strip_prefix(root).unwrap_or(directory);
        let key: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        let key = key.join("/");
        let name = if key.is_empty() { SCRIPT.to_owned() } else { format!("{key}/{SCRIPT}") };
        scripts.insert(key, Script { name, text: text.into(), open_libs });
    }
    Ok(())
}
