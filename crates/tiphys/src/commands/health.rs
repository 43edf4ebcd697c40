//! `tiphys health`: what Argo CD would say of an object.

mod shown;
mod test;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value as Json;
use tiphys_health::{
    Evaluator, Limits, Lookup, Tree, assess, definitions, objects, overrides_from_argocd_cm,
};
use tiphys_model::Exit;
use tiphys_report::Notice;

use crate::args::{DocumentFormat, HealthAction, HealthArgs};
use crate::failure::Failure;
use crate::output;
use shown::Shown;

pub(crate) fn run(args: &HealthArgs) -> Result<Exit, Failure> {
    match (&args.action, &args.file) {
        (Some(HealthAction::Test(args)), _) => test::run(args),
        (None, Some(file)) => judge(file, args),
        (None, None) => Err(Failure::Bug("a file was not asked for".to_owned())),
    }
}

fn judge(file: &Path, args: &HealthArgs) -> Result<Exit, Failure> {
    let lookup = lookup(args)?;
    let objects = read_objects(file)?;
    if objects.is_empty() {
        return Err(unusable(file, "file is empty", None, OBJECTS));
    }
    let mut evaluator = Evaluator::new(Limits::default());
    let mut shown = Vec::new();
    let mut exit = Exit::Done;
    for object in &objects {
        let Some(assessment) = assess(&lookup, &mut evaluator, object) else { continue };
        if let Some(Err(_)) = &assessment.verdict {
            exit = Exit::Failed;
        }
        shown.push(Shown::new(object, &assessment, args.explain));
    }
    match args.output {
        DocumentFormat::Text => output::text(|out| {
            for (index, one) in shown.iter().enumerate() {
                let gap = if index > 0 { "\n" } else { "" };
                write!(out, "{gap}{one}")?;
            }
            Ok(())
        })?,
        DocumentFormat::Json => output::data(|mut out| {
            serde_json::to_writer_pretty(&mut out, &BTreeMap::from([("objects", &shown)]))?;
            writeln!(out)
        })?,
    }
    Ok(exit)
}

/// The scripts that an Argo CD would have: those that Tiphys installs, or the given ones.
fn lookup(args: &HealthArgs) -> Result<Lookup, Failure> {
    let overrides = match &args.argocd_cm {
        None => {
            let own = definitions().into_iter();
            own.map(|definition| (definition.kind.to_string(), definition.script)).collect()
        }
        Some(path) => {
            let maps = read_objects(path)?;
            let map =
                maps.iter().find(|object| object["kind"] == "ConfigMap").ok_or_else(|| {
                    let next = "`kubectl get configmap argocd-cm -n argocd -o yaml` prints it";
                    unusable(path, "no ConfigMap in the file", None, next)
                })?;
            overrides_from_argocd_cm(map).map_err(|error| {
                let why = Some(error.to_string());
                unusable(path, "invalid health scripts", why, "fix them in the ConfigMap")
            })?
        }
    };
    let built_in = match &args.built_in {
        None => Lookup::default().built_in,
        Some(path) => tree(path, true)?.scripts,
    };
    Ok(Lookup { overrides, built_in })
}

fn tree(path: &Path, open_libs: bool) -> Result<Tree, Failure> {
    Tree::read(path, open_libs).map_err(|error| {
        Failure::Health(Notice {
            what: "cannot read the health scripts".to_owned(),
            place: Some(path.display().to_string()),
            why: Some(error.to_string()),
            next: Some("pass a directory that contains GROUP/KIND/health.lua".to_owned()),
        })
    })
}

/// What to pass.
const OBJECTS: &str = "pass Kubernetes objects, such as the output of `kubectl get -o yaml`";

/// Larger than any object that a cluster would keep, and small enough to be read.
const MOST: u64 = 64 << 20;

fn read_objects(path: &Path) -> Result<Vec<Json>, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST + 1).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text))
    };
    match read {
        Ok(length) if length as u64 > MOST => {
            return Err(unusable(path, "file is larger than 64 MiB", None, "pass a single object"));
        }
        Ok(_) => {}
        Err(error) => {
            let (what, why) = match error.kind() {
                io::ErrorKind::NotFound => ("file not found", None),
                _ => ("cannot read the file", Some(error.to_string())),
            };
            return Err(unusable(path, what, why, "check the path and its permissions"));
        }
    }
    objects(&text).map_err(|error| {
        unusable(path, "not a Kubernetes object", Some(error.to_string()), OBJECTS)
    })
}

fn unusable(path: &Path, what: &str, why: Option<String>, next: &str) -> Failure {
    let stdin = path == Path::new("-");
    Failure::Health(Notice {
        what: what.to_owned(),
        place: Some(if stdin { "stdin".to_owned() } else { path.display().to_string() }),
        why,
        next: Some(next.to_owned()),
    })
}
