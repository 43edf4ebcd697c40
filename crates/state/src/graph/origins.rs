//! Which namespaces and CRDs came with an app of the platform, and which were there before it.
//!
//! What the cluster has is noted before the first app begins, and again before apps of a later run
//! do: somebody may have made a namespace meanwhile that a new app is in. What came with an app is
//! noted with its uid when the app is Done.

use super::{DeployedGraph, Names, Uids};

impl DeployedGraph {
    /// Notes what is `there` before the apps of a run begin. `brought` is what apps of earlier runs
    /// have brought: one that died has noted nothing of it.
    pub fn note_there(&mut self, there: &Uids, brought: &Names) {
        let Some(before) = &mut self.before else { return };
        let came = self.came.get_or_insert_default();
        let Names { namespaces, crds } = &self.brought;
        for (there, before, appeared, came, brought) in [
            (
                &there.namespaces,
                &mut before.namespaces,
                &mut self.appeared.namespaces,
                &mut came.namespaces,
                namespaces | &brought.namespaces,
            ),
            (
                &there.crds,
                &mut before.crds,
                &mut self.appeared.crds,
                &mut came.crds,
                crds | &brought.crds,
            ),
        ] {
            // What has gone and comes back, comes with whoever brings it then.
            before.retain(|name| there.contains_key(name));
            appeared.retain(|name| there.contains_key(name));
            came.retain(|name, _| there.contains_key(name));
            for (name, uid) in there {
                if before.contains(name) || appeared.contains(name) || came.contains_key(name) {
                    continue;
                }
                if brought.contains(name) {
                    came.insert(name.clone(), uid.clone());
                } else {
                    appeared.insert(name.clone());
                }
            }
        }
    }

    /// What of this nobody has noted yet.
    pub fn unnoted(&self, brought: &Names) -> Names {
        let Some(before) = &self.before else { return Names::default() };
        let came = self.came.as_ref().map(Uids::names).unwrap_or_default();
        brought.without(before).without(&self.appeared).without(&came)
    }

    /// Notes that this came with apps that are Done.
    pub fn note_came(&mut self, brought: &Names, there: &Uids) {
        let came = there.only(&self.unnoted(brought));
        self.came.get_or_insert_default().extend(came);
    }

    /// Namespaces and CRDs that came with the platform, and go with it.
    #[must_use]
    pub fn came_with_it(&self) -> Names {
        let Some(before) = &self.before else { return Names::default() };
        let mut came = self.brought.clone();
        came.extend(self.came.as_ref().map(Uids::names).unwrap_or_default());
        came.without(before).without(&self.appeared)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{graph, names};
    use super::*;

    /// `name=uid`
    fn uids(namespaces: &[&str], crds: &[&str]) -> Uids {
        let map = |all: &[&str]| -> BTreeMap<String, String> {
            let one = |one: &&str| one.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
            all.iter().filter_map(one).collect()
        };
        Uids { namespaces: map(namespaces), crds: map(crds) }
    }

    fn deployed() -> DeployedGraph {
        DeployedGraph { brought: Names::default(), ..graph() }
    }

    #[test]
    fn what_was_there_before_stays() {
        let mut graph = graph();
        assert_eq!(graph.came_with_it(), names(&["rook"], &["new.example.org"]));
        graph.before = None;
        assert_eq!(graph.came_with_it(), Names::default(), "nobody knows, so all of it stays");
    }

    #[test]
    fn what_comes_with_an_app_is_noted_once_with_its_uid() {
        let mut graph = deployed();
        let brought = names(&["default", "rook", "not-yet"], &["new.example.org"]);
        graph.note_came(&brought, &uids(&["default=1", "rook=2"], &["new.example.org=3"]));
        let came = uids(&["rook=2"], &["new.example.org=3"]);
        assert_eq!(graph.came, Some(came.clone()));
        assert_eq!(graph.came_with_it(), came.names());
        graph.note_came(&brought, &uids(&["rook=9"], &["new.example.org=3"]));
        assert_eq!(graph.came, Some(came), "another one of the same name has not come with it");
    }

    #[test]
    fn what_somebody_makes_between_two_runs_was_there_before_the_app_that_uses_it() {
        let mut graph = deployed();
        let there = uids(&["default=1", "theirs=2", "rook=3"], &["theirs.x=4"]);
        graph.note_there(&there, &names(&["rook"], &[]));
        assert_eq!(graph.came, Some(uids(&["rook=3"], &[])), "of a run that has died");
        graph.note_came(&names(&["theirs", "rook"], &["theirs.x"]), &there);
        assert_eq!(graph.came_with_it(), names(&["rook"], &[]));
    }

    #[test]
    fn what_has_gone_comes_with_whoever_brings_it_back() {
        let mut graph = deployed();
        let brought = names(&["default", "rook"], &[]);
        graph.note_came(&brought, &uids(&["rook=1"], &[]));
        graph.note_there(&uids(&[], &[]), &brought);
        let there = uids(&["default=2", "rook=3"], &[]);
        graph.note_came(&brought, &there);
        assert_eq!(graph.came, Some(there));
    }

    #[test]
    fn what_is_made_anew_between_two_runs_keeps_its_first_uid() {
        let mut graph = deployed();
        let brought = names(&["rook"], &[]);
        graph.note_came(&brought, &uids(&["rook=1"], &[]));
        graph.note_there(&uids(&["rook=2"], &[]), &brought);
        graph.note_came(&brought, &uids(&["rook=2"], &[]));
        assert_eq!(
            graph.came,
            Some(uids(&["rook=1"], &[])),
            "so a teardown knows that it is not ours"
        );
    }

    #[test]
    fn where_nobody_could_look_nothing_is_noted() {
        let mut graph = DeployedGraph { before: None, ..deployed() };
        let there = uids(&["rook=1"], &[]);
        graph.note_there(&there, &names(&["rook"], &[]));
        graph.note_came(&names(&["rook"], &[]), &there);
        assert_eq!(graph.came, Some(Uids::default()));
    }
}
