//! Sync waves: the order that Argo CD gives the Applications that one Application creates.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_model::AppName;

use crate::decode::Decode;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::{DependencyDocument, EdgeOrigin};
use crate::resolve::Apps;
use crate::source::Spanned;
use crate::yaml::Node;

pub(super) const ANNOTATION: &str = "argocd.argoproj.io/sync-wave";

/// Two waves of 1,000 apps. With names of up to 50 characters, these dependencies fit in a platform
/// file; two waves of 100,000 apps would be 10 billion, and no memory is large enough.
const MAX_EDGES: u64 = 1_000_000;

/// The wave of an Application. Without the annotation it is 0, and its place is that of the name.
pub(super) fn read(
    annotation: Option<Node<'_>>,
    name: Node<'_>,
    problems: &mut Diagnostics,
) -> Option<Spanned<i64>> {
    let Some(node) = annotation else { return Some(Spanned { value: 0, span: name.span() }) };
    let text = String::decode(node, problems)?;
    let Ok(value) = text.parse() else {
        let title = format!("{} is not a sync wave", quoted(&text));
        let label = "expected a whole number of at most 64 bits";
        let hint = r#"write a quoted number such as "-1"; without the annotation, the wave is 0"#;
        problems.push(Diagnostic::new(title, node.span(), label).hint(hint));
        return None;
    };
    Some(Spanned { value, span: node.span() })
}

/// The waves of the apps whose wave is known.
#[derive(Default)]
pub(super) struct Waves(BTreeMap<AppName, Spanned<i64>>);

impl Waves {
    /// Of an app that is defined twice, the first wave counts: that there are two is reported
    /// elsewhere, and must not look like a cycle here.
    pub(super) fn insert(&mut self, app: &AppName, wave: Option<Spanned<i64>>) {
        if let Some(wave) = wave {
            self.0.entry(app.clone()).or_insert(wave);
        }
    }

    /// Lets every app depend on all of the nearest earlier wave, and so on everything before.
    pub(super) fn add_edges(&self, apps: &mut Apps, problems: &mut Diagnostics) {
        let mut members: BTreeMap<i64, Vec<&AppName>> = BTreeMap::new();
        for (app, wave) in &self.0 {
            members.entry(wave.value).or_default().push(app);
        }
        if self.refuse_too_many(&members, problems) {
            return;
        }
        for (_, app) in &mut apps.list {
            let Some(wave) = self.0.get(&app.name.value) else { continue };
            let Some((_, earlier)) = members.range(..wave.value).next_back() else { continue };
            let written: BTreeSet<AppName> =
                app.depends_on.items.iter().map(|written| written.app.value.clone()).collect();
            let added = earlier.iter().filter(|name| !written.contains(**name));
            app.depends_on.items.extend(added.map(|name| DependencyDocument {
                app: Spanned { value: (*name).clone(), span: wave.span },
                optional: false,
                origin: EdgeOrigin::SyncWave,
            }));
        }
    }

    /// Whether there would be more than [`MAX_EDGES`], which is reported.
    fn refuse_too_many(
        &self,
        members: &BTreeMap<i64, Vec<&AppName>>,
        problems: &mut Diagnostics,
    ) -> bool {
        let neighbours = members.values().zip(members.values().skip(1));
        let product =
            |(earlier, later): (&Vec<_>, &Vec<_>)| earlier.len() as u64 * later.len() as u64;
        let edges: u64 = neighbours.map(product).sum();
        if edges <= MAX_EDGES {
            return false;
        }
        if let Some(first) = self.0.values().min_by_key(|wave| wave.span) {
            let title = format!("the sync waves would make {edges} dependencies");
            let label = format!("at most {MAX_EDGES} are allowed in all files");
            let hint = "use `tiphys.dev/depends-on` annotations instead of `--edges-from-waves`";
            problems.push(Diagnostic::new(title, first.span, label).hint(hint));
        }
        true
    }
}
