//! Findings about apps, in words.

use std::collections::{BTreeMap, BTreeSet};

use super::App;

/// Findings, each with the apps that it is about.
#[derive(Default)]
pub(super) struct ByApp<'a>(BTreeMap<String, BTreeSet<&'a str>>);

impl<'a> ByApp<'a> {
    pub(super) fn add(&mut self, what: impl Into<String>, app: &'a App) {
        self.0.entry(what.into()).or_default().insert(&app.name);
    }

    pub(super) fn has(&self, what: &str) -> bool {
        self.0.contains_key(what)
    }

    /// Nothing if there are none.
    pub(super) fn shown(&self) -> Option<String> {
        let one = |(what, apps): (&String, &BTreeSet<&str>)| {
            let names: Vec<&str> = apps.iter().copied().collect();
            let word = if names.len() == 1 { "app" } else { "apps" };
            format!("{what} ({word} {})", names.join(", "))
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// How many apps are not looked at because they go to other clusters.
pub(super) fn elsewhere(apps: &[App]) -> Option<String> {
    let left_out = apps.iter().filter(|app| app.elsewhere).count();
    (left_out > 0).then(|| format!("{} on other clusters not checked", count(left_out, "app")))
}

/// How many apps are not looked at because nobody knows what they render.
pub(super) fn unrendered<'a>(apps: impl Iterator<Item = &'a App>) -> Option<String> {
    let unknown = apps.filter(|app| app.rendered.is_err()).count();
    (unknown > 0).then(|| format!("{} not rendered by Argo CD", count(unknown, "app")))
}

/// What was found, and what it leaves out.
pub(super) fn noted<const N: usize>(
    found: impl Into<String>,
    notes: [Option<String>; N],
) -> String {
    [Some(found.into())].into_iter().chain(notes).flatten().collect::<Vec<_>>().join("; ")
}

pub(super) fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}
