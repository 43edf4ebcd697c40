//! Objects that were written to a cluster, or would be: as a table, or as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use tiphys_cluster::ObjectName;
use tiphys_install::bootstrap::Applied;
use tiphys_install::configure::{Change, Outcome};
use tiphys_report::{ObjectLine, ObjectState, object_table};

use crate::args::DocumentFormat;
use crate::failure::Failure;
use crate::output;

/// One object, whoever wrote it.
pub(crate) struct Written {
    object: ObjectName,
    outcome: Outcome,
}

impl From<Applied> for Written {
    fn from(applied: Applied) -> Self {
        Written { object: applied.object, outcome: applied.outcome }
    }
}

impl From<&Change> for Written {
    fn from(change: &Change) -> Self {
        let Change { kind, name, namespace, outcome, .. } = change;
        let [kind, name, namespace] = [kind, name, namespace].map(Clone::clone);
        let object = ObjectName { group: String::new(), kind, namespace, name };
        Written { object, outcome: *outcome }
    }
}

impl Written {
    pub(crate) fn line(&self) -> ObjectLine<'_> {
        ObjectLine {
            kind: &self.object.kind,
            name: &self.object.name,
            namespace: &self.object.namespace,
            state: match self.outcome {
                Outcome::Created => ObjectState::Created,
                Outcome::Changed => ObjectState::Changed,
                Outcome::Unchanged => ObjectState::Unchanged,
                Outcome::Removed => ObjectState::Removed,
            },
        }
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.object.kind,
            "name": self.object.name,
            "namespace": self.object.namespace,
            "result": self.outcome.as_str(),
        })
    }
}

/// Prints what became of each.
pub(crate) fn print(objects: &[Written], format: DocumentFormat) -> Result<(), Failure> {
    match format {
        DocumentFormat::Json => output::data(|out| write_json(out, objects)),
        DocumentFormat::Text => output::text(|out| {
            let lines: Vec<ObjectLine> = objects.iter().map(Written::line).collect();
            write!(out, "{}", object_table(&lines))
        }),
    }
}

fn write_json(mut out: &mut dyn Write, objects: &[Written]) -> io::Result<()> {
    let list: Value = objects.iter().map(Written::json).collect();
    serde_json::to_writer_pretty(&mut out, &list)?;
    writeln!(out)
}
