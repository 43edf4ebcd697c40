//! What is known of the namespaces that are watched, and what of their events is news.

use std::collections::BTreeSet;

use kube::runtime::watcher;

use super::{Event, WatchEvent};
use crate::application::Application;
use crate::applications::Applications;

/// What of the events concerns these names, and which of them are there.
pub(super) struct Listing {
    applications: Applications,
    names: BTreeSet<String>,
    /// As [`Applications::all`] has them.
    namespaces: Vec<Namespace>,
}

#[derive(Default)]
struct Namespace {
    /// In the list that is being read.
    listed: BTreeSet<String>,
    /// `None`: no list has been read to its end.
    there: Option<BTreeSet<String>>,
}

impl Namespace {
    fn remove(&mut self, name: &str) -> bool {
        self.there.as_mut().is_some_and(|there| there.remove(name))
    }
}

impl Listing {
    pub(super) fn new(applications: Applications, names: BTreeSet<String>) -> Self {
        let namespaces = applications.all().map(|_| Namespace::default()).collect();
        Listing { applications, names, namespaces }
    }

    /// An event in the namespace at this position.
    pub(super) fn digest(&mut self, at: usize, event: Event) -> Option<WatchEvent> {
        match event {
            Err(error) => Some(WatchEvent::Failed(error.into())),
            Ok(watcher::Event::Init) => {
                self.namespaces[at].listed.clear();
                None
            }
            Ok(watcher::Event::InitApply(application)) => {
                if !self.is_meant(&application) {
                    return None;
                }
                self.namespaces[at].listed.insert(application.name().to_owned());
                Some(WatchEvent::Applied(Box::new(application)))
            }
            Ok(watcher::Event::Apply(application)) => {
                if !self.is_meant(&application) {
                    return self.gone(at, &application);
                }
                let there = self.namespaces[at].there.get_or_insert_default();
                there.insert(application.name().to_owned());
                Some(WatchEvent::Applied(Box::new(application)))
            }
            Ok(watcher::Event::InitDone) => {
                let namespace = &mut self.namespaces[at];
                namespace.there = Some(std::mem::take(&mut namespace.listed));
                let there: Option<Vec<_>> =
                    self.namespaces.iter().map(|namespace| namespace.there.as_ref()).collect();
                Some(WatchEvent::Listed(there?.into_iter().flatten().cloned().collect()))
            }
            Ok(watcher::Event::Delete(application)) => self.gone(at, &application),
        }
    }

    /// If it was there. One that leaves the platform's projects is gone, too.
    fn gone(&mut self, at: usize, application: &Application) -> Option<WatchEvent> {
        let name = application.name();
        if !self.namespaces[at].remove(name) {
            return None;
        }
        Some(WatchEvent::Gone { name: name.to_owned(), version: application.version().ok()? })
    }

    fn is_meant(&self, application: &Application) -> bool {
        let one_namespace = self.namespaces.len() == 1;
        self.names.contains(application.name())
            && (one_namespace || self.applications.is_ours(application))
    }
}
