//! What the manifests of Applications say besides, and who relies on it should know.

use super::{SyncWaves, UNKNOWN_TO_ARGOCD, documents_of, waves};
use crate::diagnostic::Diagnostics;
use crate::source::Sources;
use crate::yaml::{self, Node};

/// Counts of manifests that need a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassedOver {
    /// Applications with a sync wave, where waves are ignored.
    pub waves: usize,
    /// ApplicationSets: only their controller knows what they make.
    pub sets: usize,
    /// Applications that list dependencies in an annotation that looks like Argo CD's own.
    pub unknown_to_argocd: usize,
}

/// What was passed over in manifests that have been read without a problem.
#[must_use]
pub fn passed_over(waves: SyncWaves, sources: &Sources) -> PassedOver {
    let mut found = PassedOver::default();
    for (file, source) in sources.iter() {
        // What cannot be read has been reported by who reads the Applications.
        let Ok(tree) = yaml::compose(file, source) else { continue };
        let mut problems = Diagnostics::default();
        let documents = documents_of(tree.documents(), &mut problems);
        found.sets += documents.sets;
        for application in documents.applications {
            let annotations = application.get("metadata").and_then(|node| node.get("annotations"));
            let has = |key| annotations.and_then(|node: Node<'_>| node.get(key)).is_some();
            found.waves += usize::from(waves == SyncWaves::Ignored && has(waves::ANNOTATION));
            found.unknown_to_argocd += usize::from(has(UNKNOWN_TO_ARGOCD));
        }
    }
    found
}

impl PassedOver {
    /// A sentence for each.
    #[must_use]
    pub fn notes(self) -> Vec<String> {
        let some = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let mut notes = Vec::new();
        if self.waves > 0 {
            let one = "Application has a sync wave, which is";
            let some = some(self.waves, one, "Applications have sync waves, which are");
            notes.push(format!("{some} ignored: --edges-from-waves turns waves into dependencies"));
        }
        if self.sets > 0 {
            let one = "ApplicationSet was skipped: the Applications that it creates";
            let many = "ApplicationSets were skipped: the Applications that they create";
            notes.push(format!("{} are not known here", some(self.sets, one, many)));
        }
        if self.unknown_to_argocd > 0 {
            let some = some(self.unknown_to_argocd, "Application names", "Applications name");
            notes.push(format!(
                "{some} dependencies in `{UNKNOWN_TO_ARGOCD}`: Tiphys uses them, but Argo CD \
                 ignores this annotation",
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn notes(waves: SyncWaves, text: &str) -> Vec<String> {
        let source = Source::new("a.yaml", text.as_bytes().to_vec()).unwrap();
        passed_over(waves, &Sources::new(vec![source])).notes()
    }

    #[test]
    fn whatever_orders_nothing_is_told() {
        let text = "
apiVersion: v1
kind: List
items:
  - apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: { name: a, annotations: { argocd.argoproj.io/sync-wave: '1' } }
  - apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: { name: b, annotations: { argocd.argoproj.io/depends-on: a } }
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: { name: sets }
";
        let wave = "1 Application has a sync wave, which is ignored: --edges-from-waves turns \
                    waves into dependencies";
        let set = "1 ApplicationSet was skipped: the Applications that it creates are not known \
                   here";
        let depends = "1 Application names dependencies in `argocd.argoproj.io/depends-on`: \
                       Tiphys uses them, but Argo CD ignores this annotation";
        assert_eq!(notes(SyncWaves::Ignored, text), [wave, set, depends]);
        assert_eq!(notes(SyncWaves::Edges, text), [set, depends]);
        assert_eq!(notes(SyncWaves::Ignored, "{kind: ConfigMap}"), [""; 0]);
    }
}
