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
    let objects = read_objects(file, OBJECTS)?;
    if objects.is_empty() {
        let next = "give a file with Kubernetes objects";
        return Err(unusable(file, OBJECTS, "it is empty", next));
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
            let maps = read_objects(path, CONFIG_MAP)?;
            let map =
                maps.iter().find(|object| object["kind"] == "ConfigMap").ok_or_else(|| {
                    let next = "`kubectl get configmap argocd-cm -n argocd -o yaml` prints it";
                    unusable(path, CONFIG_MAP, "it has no ConfigMap", next)
                })?;
            overrides_from_argocd_cm(map).map_err(|error| {
                unusable(path, CONFIG_MAP, &error.to_string(), "repair it in the ConfigMap")
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
            what: "the health scripts cannot be read".to_owned(),
            place: Some(path.display().to_string()),
            why: Some(error.to_string()),
            next: Some("give a directory with GROUP/KIND/health.lua below it".to_owned()),
        })
    })
}

/// Larger than any object that a cluster would keep, and small enough to be read.
const MOST: u64 = 64 << 20;

const OBJECTS: &str = "there is no object to judge";
const CONFIG_MAP: &str = "there are no health scripts to take";

fn read_objects(path: &Path, what: &str) -> Result<Vec<Json>, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST + 1).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text))
    };
    match read {
        Ok(length) if length as u64 > MOST => {
            return Err(unusable(path, what, "it is larger than 64 MiB", "give one object"));
        }
        Ok(_) => {}
        Err(error) => {
            let next = "check the path and its permissions";
            return Err(unusable(path, what, &error.to_string(), next));
        }
    }
    let next = "give objects as `kubectl get -o yaml` prints them";
    objects(&text).map_err(|error| unusable(path, what, &error.to_string(), next))
}

fn unusable(path: &Path, what: &str, why: &str, next: &str) -> Failure {
    let stdin = path == Path::new("-");
    Failure::Health(Notice {
        what: what.to_owned(),
        place: Some(if stdin { "stdin".to_owned() } else { path.display().to_string() }),
        why: Some(why.to_owned()),
        next: Some(next.to_owned()),
    })
}
