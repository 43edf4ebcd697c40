//! Which check decides on an object, in Argo CD's order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;

use tiphys_model::glob::{self, Star};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What errors call it.
    pub name: String,
    pub text: Arc<str>,
    /// Whether `string`, `math` and `os` are there. Argo CD opens them for its own scripts, and
    /// for others with `useOpenLibs`.
    pub open_libs: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: String,
    pub kind: String,
}

impl GroupKind {
    #[must_use]
    pub fn of(object: &Json) -> Option<Self> {
        let text = |field: &str| object.get(field).and_then(Json::as_str);
        let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
        Some(GroupKind { group: group.to_owned(), kind: text("kind")?.to_owned() })
    }

    /// The key as in `argocd-cm`: what stands behind `resource.customizations.health.`.
    #[must_use]
    pub fn config_key(&self) -> String {
        self.to_string().replacen('/', "_", 1)
    }

    /// Whether Argo CD has a check for it that is no script.
    #[must_use]
    pub fn decided_in_go(&self) -> bool {
        matches!(
            (self.group.as_str(), self.kind.as_str()),
            ("apps", "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet")
                | ("extensions" | "networking.k8s.io", "Ingress")
                | ("argoproj.io", "Workflow")
                | ("apiregistration.k8s.io", "APIService")
                | ("", "Service" | "PersistentVolumeClaim" | "Pod")
                | ("batch", "Job")
                | ("autoscaling", "HorizontalPodAutoscaler")
        )
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            return f.write_str(&self.kind);
        }
        write!(f, "{}/{}", self.group, self.kind)
    }
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider<'l> {
    Override(&'l Script),
    /// By a wildcard of `argocd-cm`. If others match too, Argo CD takes any of them.
    WildcardOverride {
        script: &'l Script,
        pattern: &'l str,
        others: usize,
    },
    BuiltIn(&'l Script),
    WildcardBuiltIn {
        script: &'l Script,
        pattern: &'l str,
    },
    /// Decided by Argo CD itself.
    ArgoCd,
    /// No check: such an object has no health and does not count.
    Nobody,
}

impl<'l> Decider<'l> {
    #[must_use]
    pub fn script(self) -> Option<&'l Script> {
        match self {
            Decider::Override(script)
            | Decider::WildcardOverride { script, .. }
            | Decider::BuiltIn(script)
            | Decider::WildcardBuiltIn { script, .. } => Some(script),
            Decider::ArgoCd | Decider::Nobody => None,
        }
    }
}

/// The scripts of an Argo CD, by `group/Kind` or a pattern of it.
#[derive(Debug, Clone, Default)]
pub struct Lookup {
    /// From `argocd-cm`.
    pub overrides: BTreeMap<String, Script>,
    /// Argo CD's own, by directory: `_` stands for `*`.
    pub built_in: BTreeMap<String, Script>,
}

impl Lookup {
    #[must_use]
    pub fn decider(&self, kind: &GroupKind) -> Decider<'_> {
        let key = kind.to_string();
        if let Some(script) = self.overrides.get(&key) {
            return Decider::Override(script);
        }
        let mut wild = self
            .overrides
            .iter()
            .filter(|(pattern, _)| glob::matches(pattern, &key, Star::Anything));
        if let Some((pattern, script)) = wild.next() {
            return Decider::WildcardOverride { script, pattern, others: wild.count() };
        }
        if let Some(script) = self.built_in.get(&key) {
            return Decider::BuiltIn(script);
        }
        let directories = self.built_in.iter().filter(|(directory, _)| directory.contains('_'));
        for (directory, script) in directories {
            if glob::matches(&directory.replace('_', "*"), &key, Star::WithinOne) {
                return Decider::WildcardBuiltIn { script, pattern: directory };
            }
        }
        if kind.decided_in_go() { Decider::ArgoCd } else { Decider::Nobody }
    }
}
