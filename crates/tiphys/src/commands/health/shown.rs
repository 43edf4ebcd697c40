//! One object's verdict, for people and programs.

use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;
use tiphys_health::{Assessment, Decider};
use tiphys_report::{harmless, one_line};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    /// None: the object has no health, or Argo CD decides on it without a script.
    status: Option<String>,
    message: String,
    decided_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explain: Vec<String>,
}

impl Shown {
    pub(super) fn new(object: &Json, assessment: &Assessment, explain: bool) -> Self {
        let text = |json: &Json| json.as_str().map(str::to_owned);
        let metadata = &object["metadata"];
        let (status, message, error) = match &assessment.verdict {
            None => (None, String::new(), None),
            // The script gave no status: Argo CD takes that for the best one.
            Some(Ok(verdict)) => (Some(verdict.word().to_owned()), verdict.message.clone(), None),
            Some(Err(error)) => {
                (Some("Unknown".to_owned()), error.to_string(), Some(error.to_string()))
            }
        };
        let script = (!assessment.deleting).then(|| assessment.decider.script()).flatten();
        Shown {
            api_version: text(&object["apiVersion"]).unwrap_or_default(),
            kind: text(&object["kind"]).unwrap_or_default(),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]).unwrap_or_default(),
            status,
            message,
            decided_by: decided_by(assessment),
            script: script.map(|script| script.name.clone()),
            error,
            explain: if explain { steps(assessment) } else { Vec::new() },
        }
    }
}

fn decided_by(assessment: &Assessment) -> &'static str {
    if assessment.deleting {
        return "deletion";
    }
    match assessment.decider {
        Decider::Override(_) => "override",
        Decider::WildcardOverride { .. } => "wildcard-override",
        Decider::BuiltIn(_) => "built-in",
        Decider::WildcardBuiltIn { .. } => "wildcard-built-in",
        Decider::ArgoCd => "argocd",
        Decider::Nobody => "nobody",
    }
}

/// Where Argo CD looks, in its order, down to where it found something.
fn steps(assessment: &Assessment) -> Vec<String> {
    let kind = &assessment.kind;
    let places = [
        "deletion".to_owned(),
        format!("argocd-cm, {kind}"),
        "argocd-cm, wildcards".to_owned(),
        format!("built into Argo CD, {kind}"),
        "built into Argo CD, wildcards".to_owned(),
        "Argo CD's own code".to_owned(),
    ];
    let (found, what) = match assessment.decider {
        _ if assessment.deleting => (0, "yes".to_owned()),
        Decider::Override(script) => (1, script.name.clone()),
        Decider::WildcardOverride { script, pattern, others: 0 } => {
            (2, format!("`{pattern}`, {}", script.name))
        }
        Decider::WildcardOverride { script, pattern, others } => (
            2,
            format!(
                "`{pattern}`, {}; {others} more patterns match, and Argo CD picks any of them",
                script.name
            ),
        ),
        Decider::BuiltIn(script) => (3, script.name.clone()),
        Decider::WildcardBuiltIn { script, pattern } => {
            (4, format!("`{pattern}`, {}", script.name))
        }
        Decider::ArgoCd => (5, "yes".to_owned()),
        Decider::Nobody => (places.len(), String::new()),
    };
    let show = |(at, place): (usize, String)| {
        if at == found { format!("{place}: {what}") } else { format!("{place}: no") }
    };
    places.into_iter().enumerate().take(found + 1).map(show).collect()
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.namespace.iter().map(|namespace| format!("{namespace}/"));
        let name: String = place.chain([self.name.clone()]).collect();
        let word = match (&self.status, self.decided_by) {
            (Some(status), _) if status.is_empty() => "no status, which counts as Healthy",
            (Some(status), _) => status,
            (None, "argocd") => "decided by Argo CD's own code",
            (None, _) => "no health",
        };
        writeln!(f, "{}", one_line(&format!("{} {name}: {word}", self.kind)))?;
        // What a script says may have several lines.
        for line in self.message.trim_end().lines() {
            writeln!(f, "  {}", harmless(line))?;
        }
        match (&self.script, self.decided_by) {
            (Some(script), _) => writeln!(f, "  decided by {}", one_line(script))?,
            (None, "deletion") => writeln!(f, "  decided by its deletion, before any check")?,
            (None, "argocd") => {
                writeln!(f, "  Argo CD checks this kind in its own code, which does not run here")?;
            }
            (None, _) => {
                writeln!(f, "  no health check for this kind: it is ignored in the app's health")?;
                writeln!(f, "  pass Argo CD's built-in scripts with `--built-in DIR`")?;
            }
        }
        if !self.explain.is_empty() {
            writeln!(f, "  places searched, in Argo CD's order:")?;
        }
        for (index, step) in self.explain.iter().enumerate() {
            writeln!(f, "    {}. {}", index + 1, one_line(step))?;
        }
        Ok(())
    }
}
