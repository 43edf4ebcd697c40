//! The audit log as a witness: what was written to Applications, by whom, in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;
use kube::ResourceExt;
use tiphys_argocd::Application;
use tiphys_e2e::{Site, World, figure};
use tiphys_lab::audit::{self, Record};

/// A place in the log.
pub(crate) struct Mark {
    log: PathBuf,
    place: u64,
}

impl Mark {
    pub(crate) fn now(world: &World) -> Mark {
        let log = world.audit_log.clone().expect("only the lab has a log to read");
        let place = audit::length(&log).expect("the audit log");
        Mark { log, place }
    }

    /// What was written to the site's apps since, in the order of their versions.
    pub(crate) fn writes(&self, site: &Site) -> Writes {
        let records = audit::read_from(&self.log, self.place).expect("the audit log");
        let mut writes: Vec<Record> = records
            .into_iter()
            .filter(|record| record.is_write() && record.resource_version().is_some())
            // Kubernetes itself asks for the metadata alone when it takes an owner off.
            .filter(|record| record.response_object.as_ref().is_some_and(|o| o["spec"].is_object()))
            .filter(|record| {
                let object = record.object_ref.as_ref();
                object.is_some_and(|o| o.resource == "applications" && is_app(site, &o.name))
            })
            .collect();
        writes.sort_by_key(Record::resource_version);
        Writes(writes)
    }
}

fn is_app(site: &Site, name: &str) -> bool {
    site.platform.apps.iter().any(|app| app.name == name)
}

pub(crate) struct Writes(Vec<Record>);

impl Writes {
    fn applications(&self) -> impl Iterator<Item = (u64, Application)> {
        self.0.iter().map(|record| {
            let object = record.response_object.clone().expect("the policy keeps Applications");
            let version = record.resource_version().expect("a version");
            (version, serde_json::from_value(object).expect("an Application"))
        })
    }

    /// The versions at which operations were set, for each app. One operation is one, however
    /// often it is seen.
    pub(crate) fn operations(&self) -> BTreeMap<String, Vec<u64>> {
        let mut set: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
        for (version, application) in self.applications() {
            let Some(operation) = &application.operation else { continue };
            let id = operation.info.iter().flatten().map(|info| info.value.clone()).collect();
            let known = set.entry(application.name().to_owned()).or_default();
            if known.iter().all(|(other, _)| *other != id) {
                known.push((id, version));
            }
        }
        let versions = |ids: Vec<(String, u64)>| ids.into_iter().map(|(_, v)| v).collect();
        set.into_iter().map(|(app, ids)| (app, versions(ids))).collect()
    }

    /// Before the write that set the operation of an app, each of its dependencies had been
    /// written as Healthy and Synced at the revision, and not been written otherwise since.
    pub(crate) fn check_order(&self, site: &Site, revision: &str) {
        let mut states: BTreeMap<String, Vec<(u64, bool)>> = BTreeMap::new();
        for (version, application) in self.applications() {
            let status = &application.status;
            let well = status.health.status == "Healthy"
                && status.sync.status == "Synced"
                && status.sync.revision == revision;
            states.entry(application.name().to_owned()).or_default().push((version, well));
        }
        let mut edges = 0;
        let started = self.operations();
        for app in &site.platform.apps {
            let Some(start) = started.get(&app.name).and_then(|versions| versions.first()) else {
                continue;
            };
            for dependency in &app.depends_on {
                let before = states.get(dependency).into_iter().flatten();
                let last = before.take_while(|(version, _)| version < start).last();
                let well = last.is_some_and(|(_, well)| *well);
                assert!(well, "{} started before {dependency} was well", app.name);
                edges += 1;
            }
        }
        figure(&format!("{edges} edges in order"));
    }

    /// The apps that were written with a succeeded operation at the revision and as Healthy.
    pub(crate) fn stale(&self, revision: &str) -> BTreeSet<String> {
        self.applications()
            .filter(|(_, application)| {
                let state = application.status.operation_state.as_ref();
                let result = state.and_then(|state| state.sync_result.as_ref());
                state.is_some_and(|state| state.phase == "Succeeded")
                    && result.is_some_and(|result| result.revision == revision)
                    && application.status.health.status == "Healthy"
            })
            .map(|(_, application)| application.name().to_owned())
            .collect()
    }

    /// Before the write that began to delete an app, the last write to each of its dependants had
    /// let that go.
    pub(crate) fn check_reverse_order(&self, site: &Site) {
        let (mut began, mut ended) = (BTreeMap::new(), BTreeMap::new());
        for (version, application) in self.applications() {
            if application.metadata.deletion_timestamp.is_some() {
                began.entry(application.name().to_owned()).or_insert(version);
                if application.finalizers().is_empty() {
                    ended.insert(application.name().to_owned(), version);
                }
            }
        }
        let mut edges = 0;
        for app in &site.platform.apps {
            for dependency in &app.depends_on {
                let Some(removed) = began.get(dependency) else { continue };
                let gone = ended.get(&app.name);
                let first = gone.is_some_and(|gone| gone < removed);
                assert!(first, "{dependency} was removed before {} was gone", app.name);
                edges += 1;
            }
        }
        figure(&format!("{edges} edges in reverse order"));
    }

    /// The versions at which an app was written with an automated operation, and whether a sync
    /// window blocked it then.
    pub(crate) fn automated(&self, app: &str) -> Vec<(u64, bool)> {
        let of_app = self.applications().filter(|(_, application)| application.name() == app);
        of_app
            .filter(|(_, a)| a.operation.as_ref().is_some_and(|o| o.initiated_by.automated))
            .map(|(version, application)| {
                let state = application.status.operation_state;
                let blocked = state.is_some_and(|s| s.message.contains("blocked by sync window"));
                (version, blocked)
            })
            .collect()
    }

    /// When the API server got the write that set an app's operation, for each app.
    pub(crate) fn requested(&self) -> BTreeMap<String, Timestamp> {
        let mut times = BTreeMap::new();
        for record in &self.0 {
            let object = record.response_object.as_ref().expect("the policy keeps Applications");
            let name = record.object_ref.as_ref().map(|object| object.name.clone());
            if object.get("operation").is_some() {
                let time = record.request_received_timestamp.parse().expect("a time");
                times.entry(name.unwrap_or_default()).or_insert(time);
            }
        }
        times
    }

    /// When an app was first written as Healthy and Synced at the revision.
    pub(crate) fn healthy(&self, revision: &str) -> BTreeMap<String, Timestamp> {
        let mut times = BTreeMap::new();
        for (record, (_, application)) in self.0.iter().zip(self.applications()) {
            let status = &application.status;
            let well = status.health.status == "Healthy" && status.sync.revision == revision;
            if well && status.sync.status == "Synced" {
                let time = record.stage_timestamp.parse().expect("a time");
                times.entry(application.name().to_owned()).or_insert(time);
            }
        }
        times
    }

    /// As whom somebody wrote who is not Argo CD's controller.
    pub(crate) fn agents(&self) -> BTreeSet<String> {
        self.of_others().map(|record| record.user_agent.clone()).collect()
    }

    fn of_others(&self) -> impl Iterator<Item = &Record> {
        self.0.iter().filter(|record| !record.user.username.contains("application-controller"))
    }

    /// What others than Argo CD's controller wrote, when and as whom.
    pub(crate) fn told(&self) -> Vec<String> {
        let tell = |record: &Record| {
            let name = record.object_ref.as_ref().map_or("", |object| &object.name);
            let Record { verb, user_agent, request_received_timestamp: at, .. } = record;
            format!("{at} {verb} {name} by {user_agent}")
        };
        self.of_others().map(tell).collect()
    }

    /// Writes that we caused, for each app: the controller's own are not ours.
    pub(crate) fn of_ours(&self) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        for record in self.of_others() {
            let name = record.object_ref.as_ref().map(|object| object.name.clone());
            *counts.entry(name.unwrap_or_default()).or_default() += 1;
        }
        counts
    }
}
