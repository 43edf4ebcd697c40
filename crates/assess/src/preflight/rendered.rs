//! What the platform's apps render, as Argo CD says, judged against the cluster that they go to.

mod by_app;
mod objects;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use tiphys_model::bootstrap::Mirror;

use super::{ABSENT_OR_INSTALLED, Check, NO_CLUSTER, Problem, Requirement, Section, Trouble};
use by_app::{ByApp, count, elsewhere, noted, unrendered};
pub use objects::{Kind, Rendered};

/// These are in every cluster, so that they are there says nothing.
const KUBERNETES_NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

const NOTHING_RENDERED: &str = "nothing was rendered";

/// An app of the platform that has an Application.
#[derive(Debug, Clone)]
pub struct App {
    pub name: String,
    /// Its destination; empty if each object names its own namespace.
    pub namespace: String,
    /// It goes to another cluster, which nobody asks from here.
    pub elsewhere: bool,
    /// Somebody has synced it before.
    pub synced: bool,
    pub rendered: Result<Rendered, Unrendered>,
}

/// Why it is not known what an app renders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrendered {
    /// Argo CD's reason.
    Failed(String),
    /// Argo CD does not accept the token, or it lacks the right to see the app.
    Denied(String),
    /// The time for all apps together was over.
    Late(Duration),
}

/// What was read.
#[derive(Debug, Clone)]
pub struct Look {
    pub apps: Vec<App>,
    /// How many apps of the platform have no Application yet.
    pub absent: usize,
    /// The namespaces that exist.
    pub namespaces: Result<BTreeSet<String>, Problem>,
    /// The kinds that the API server serves.
    pub kinds: Result<BTreeSet<Kind>, Problem>,
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// Other rows say why.
    NoCluster,
    NoArgoCd,
    NoApplications,
    /// Runs go through the fields of Applications, and those do not say it.
    NoApi,
    Problem(Problem),
}

impl From<Problem> for NotRead {
    fn from(problem: Problem) -> Self {
        match problem.trouble {
            Trouble::Unreachable => NotRead::NoCluster,
            Trouble::Missing | Trouble::Rejected => NotRead::Problem(problem),
        }
    }
}

impl NotRead {
    fn why(&self) -> &str {
        match self {
            NotRead::NoCluster => NO_CLUSTER,
            NotRead::NoArgoCd => "Argo CD not found in the cluster",
            NotRead::NoApplications => "no app has an Application yet",
            NotRead::NoApi => "needs Argo CD's API, but `argocd.access` is `kubernetes`",
            NotRead::Problem(problem) => &problem.why,
        }
    }
}

fn manifests() -> Requirement {
    Requirement::new(Section::Cluster, "manifests of apps", "Argo CD can render them")
}

fn kinds() -> Requirement {
    Requirement::new(Section::Cluster, "kinds of apps", "served, or an app has the CRD")
}

fn images() -> Requirement {
    Requirement::new(Section::Connectivity, "images of apps", "available in a mirror")
}

fn namespaces() -> Requirement {
    Requirement::new(Section::Absence, "namespaces of apps", ABSENT_OR_INSTALLED)
}

/// The four rows. `mirrors` are those of the platform file.
#[must_use]
pub fn judge(read: &Result<Look, NotRead>, mirrors: &[Mirror]) -> [Check; 4] {
    let no_mirrors = "no mirrors in `bootstrap.images`";
    match read {
        Ok(look) => [
            judge_manifests(look),
            judge_kinds(look),
            match mirrors {
                [] => images().skipped(no_mirrors),
                mirrors => judge_images(&look.apps, mirrors),
            },
            judge_namespaces(look),
        ],
        Err(reason) => {
            let why = reason.why();
            let not_yet = matches!(reason, NotRead::NoArgoCd | NotRead::NoApplications);
            [
                manifests().skipped(why),
                kinds().skipped(why),
                images().skipped(if mirrors.is_empty() { no_mirrors } else { why }),
                namespaces().skipped(if not_yet {
                    "unknown until Argo CD renders the root app"
                } else {
                    why
                }),
            ]
        }
    }
}

fn judge_manifests(look: &Look) -> Check {
    let mut reasons = ByApp::default();
    let mut worst: Option<(Trouble, &App)> = None;
    for app in &look.apps {
        let Err(reason) = &app.rendered else { continue };
        let (trouble, why) = match reason {
            // One that was never synced may need what another app brings first.
            Unrendered::Failed(why) => (app.synced.then_some(Trouble::Missing), first_line(why)),
            Unrendered::Denied(why) => (Some(Trouble::Rejected), first_line(why)),
            Unrendered::Late(limit) => (None, format!("not rendered within {} s", limit.as_secs())),
        };
        reasons.add(why, app);
        if let Some(trouble) = trouble.filter(|new| worst.is_none_or(|(known, _)| known < *new)) {
            worst = Some((trouble, app));
        }
    }
    let Some(reasons) = reasons.shown() else {
        let absent = (look.absent > 0)
            .then(|| format!("{} without an Application yet", count(look.absent, "app")));
        return manifests().passed(noted(count(look.apps.len(), "app"), [absent]));
    };
    match worst {
        None => manifests().warned(
            reasons,
            if look.apps.iter().any(|app| matches!(app.rendered, Err(Unrendered::Failed(_)))) {
                "fix the app's source, unless it needs something from another app: then it renders \
                 once that app is deployed"
            } else {
                "run this again: Argo CD keeps what it has rendered so far"
            },
        ),
        Some((Trouble::Rejected, _)) => manifests().failed(
            Trouble::Rejected,
            reasons,
            "run `tiphys configure` with this platform file: it sets up the token and its rights",
        ),
        Some((trouble, app)) => {
            let next = format!(
                "run `argocd app manifests {}` to see the whole error; fix the app's source, or \
                 whatever Argo CD needs to render it",
                app.name
            );
            manifests().failed(trouble, reasons, next)
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn judge_kinds(look: &Look) -> Check {
    let served = match &look.kinds {
        Ok(served) => served,
        Err(problem) => return kinds().skipped(&problem.why),
    };
    let notes = [elsewhere(&look.apps), unrendered(look.here())];
    let apps: Vec<(&App, &Rendered)> = rendered(look.here()).collect();
    if apps.is_empty() {
        return kinds().skipped(noted(NOTHING_RENDERED, notes));
    }
    let brought: BTreeSet<&Kind> = apps.iter().flat_map(|(_, one)| &one.brought).collect();
    let mut all = BTreeSet::new();
    let mut unknown = ByApp::default();
    for (app, one) in apps {
        for kind in &one.kinds {
            all.insert(kind);
            if !served.contains(kind) && !brought.contains(kind) {
                unknown.add(kind.to_string(), app);
            }
        }
    }
    match unknown.shown() {
        None => kinds().passed(noted(count(all.len(), "kind"), notes)),
        Some(unknown) => kinds().warned(
            noted(unknown, notes),
            "add the app that has the CRD, or check the spelling of `apiVersion` and `kind`",
        ),
    }
}

fn judge_images(apps: &[App], mirrors: &[Mirror]) -> Check {
    let notes = [unrendered(apps.iter())];
    let apps: Vec<(&App, &Rendered)> = rendered(apps.iter()).collect();
    if apps.is_empty() {
        return images().skipped(noted(NOTHING_RENDERED, notes));
    }
    let mut all = BTreeSet::new();
    let mut uncovered = ByApp::default();
    for (app, one) in apps {
        for image in &one.images {
            all.insert(image);
            if !mirrors.iter().any(|mirror| mirror.covers(image)) {
                uncovered.add(image, app);
            }
        }
    }
    match uncovered.shown() {
        None => images().passed(noted(count(all.len(), "image"), notes)),
        Some(uncovered) => images().warned(
            noted(uncovered, notes),
            "copy them to a mirror and add it to `bootstrap.images`; if the cluster cannot reach \
             their registries, their pods do not start",
        ),
    }
}

fn judge_namespaces(look: &Look) -> Check {
    let there = match &look.namespaces {
        Ok(there) => there,
        Err(problem) => return namespaces().skipped(&problem.why),
    };
    let (synced, new): (Vec<&App>, Vec<&App>) = look.here().partition(|app| app.synced);
    // An app that is there already has brought what it shares with a new one.
    let ours: BTreeSet<&str> = synced.iter().flat_map(|app| app.namespaces()).collect();
    let mut found = ByApp::default();
    for app in &new {
        for namespace in app.namespaces() {
            let is_known = KUBERNETES_NAMESPACES.contains(&namespace) || ours.contains(namespace);
            if there.contains(namespace) && !is_known {
                found.add(namespace, app);
            }
        }
    }
    let applied = new.iter().flat_map(|app| app.applied()).find(|name| found.has(name));
    let notes = [elsewhere(&look.apps), unrendered(look.here())];
    match found.shown() {
        None => {
            let passed = match (synced.is_empty(), new.is_empty()) {
                (true, true) => "no app deploys to this cluster",
                (false, true) => "from synced apps",
                (_, false) => "absent",
            };
            namespaces().passed(noted(passed, notes))
        }
        Some(found) => namespaces().warned(
            noted(found, notes),
            match applied {
                None => "a teardown keeps a namespace that existed before; delete it now if a \
                         teardown should remove it"
                    .to_owned(),
                Some(applied) => format!(
                    "a teardown keeps a namespace that existed before, unless an app applies it: \
                     Argo CD deletes {applied} with its app, and the teardown is refused while it \
                     contains objects that are not the platform's"
                ),
            },
        ),
    }
}

impl Look {
    /// The apps that go to the cluster that was asked.
    fn here(&self) -> impl Iterator<Item = &App> {
        self.apps.iter().filter(|app| !app.elsewhere)
    }
}

impl App {
    fn applied(&self) -> impl Iterator<Item = &str> {
        self.rendered.iter().flat_map(|rendered| &rendered.namespaces).map(String::as_str)
    }

    /// Where it goes, and what it applies.
    fn namespaces(&self) -> impl Iterator<Item = &str> {
        let destination = [self.namespace.as_str()].into_iter().filter(|name| !name.is_empty());
        destination.chain(self.applied())
    }
}

fn rendered<'a>(
    apps: impl Iterator<Item = &'a App>,
) -> impl Iterator<Item = (&'a App, &'a Rendered)> {
    apps.filter_map(|app| Some((app, app.rendered.as_ref().ok()?)))
}
