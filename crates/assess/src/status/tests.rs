//! The document, case by case, on a platform where all is well: `db`, `api` on it, `web` on that,
//! and `docs` that depends on nothing.

mod since;
mod states;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use tiphys_model::graph::{Edge, Graph};
use tiphys_model::platform::{AppType, ArgoCd, Dependency, Hold, Policies, Retry, Timeouts};
use tiphys_model::{
    App, AppIx, AppName, Health, Plan, Platform, PlatformName, Scope, StackName, SyncStatus,
};

use super::{Authority, Installed, LeaseSeen, Seen, Situation, State, Status};
use tiphys_run::Stamp;
use tiphys_run::{
    Condition, ConditionKind, Deleting, Initiator, LastOperation, Observation, Operation,
    OperationPhase, Revisions,
};

const APPS: [(&str, &[&str]); 4] =
    [("api", &["db"]), ("db", &[]), ("docs", &[]), ("web", &["api"])];

fn app(name: &str, dependencies: &[&str]) -> App {
    let position = |name: &&str| APPS.iter().position(|(app, _)| app == name).unwrap();
    let minute = Duration::from_secs(60);
    App {
        name: AppName::parse(name).unwrap(),
        stack: StackName::parse(name).unwrap(),
        app_type: AppType::Simple,
        group: None,
        typical: minute,
        dependencies: dependencies
            .iter()
            .map(|name| Dependency { app: AppIx::new(position(name)), optional: false })
            .collect(),
        timeouts: Timeouts { sync: minute, health: minute },
        retry: Retry::default(),
        tolerate_drift: vec!["Secret/noise".to_owned()],
        health: Vec::new(),
    }
}

fn platform(hold: Hold) -> Platform {
    let apps: Vec<App> = APPS.map(|(name, dependencies)| app(name, dependencies)).into();
    let edges: Vec<Edge> = apps
        .iter()
        .enumerate()
        .flat_map(|(at, app)| {
            let edge = move |d: &Dependency| Edge { dependant: AppIx::new(at), dependency: d.app };
            app.dependencies.iter().map(edge).collect::<Vec<_>>()
        })
        .collect();
    Platform {
        name: PlatformName::parse("test").unwrap(),
        environment: None,
        source: None,
        bootstrap: None,
        teardown: tiphys_model::platform::TeardownPolicy::default(),
        workflows: tiphys_model::platform::WorkflowMode::default(),
        deploy: tiphys_model::DeployPolicy::default(),
        triggers: Vec::new(),
        argocd: ArgoCd {
            namespace: "argocd".to_owned(),
            application_namespaces: Vec::new(),
            projects: vec!["apps".to_owned()],
            root_project: "roots".to_owned(),
            has_root_app: true,
            access: tiphys_model::platform::ArgoCdAccess::default(),
            server: tiphys_model::ApiServer::default(),
            allowed: tiphys_model::platform::Allowed::default(),
        },
        policies: Policies {
            hold,
            concurrency: NonZeroU32::MIN,
            groups: Vec::new(),
            timeout: Duration::from_secs(3600),
        },
        graph: Graph::new(apps.len(), &edges),
        apps,
    }
}

fn revisions(revision: &str) -> Revisions {
    Revisions([revision.into()].into())
}

/// Synced by a run, assessed after it, and Healthy.
fn well() -> Observation {
    Observation {
        version: 7,
        cluster: None,
        deleting: None,
        operation: None,
        last: Some(LastOperation {
            operation: ours(),
            phase: OperationPhase::Succeeded,
            finished_at: Some(Stamp(100)),
            revisions: revisions("r1"),
            message: "successfully synced".into(),
        }),
        reconciled_at: Some(Stamp(101)),
        compared_to_spec: true,
        revisions: revisions("r1"),
        pinned: true,
        sync: SyncStatus::Synced,
        drifted: Vec::new(),
        health: Health::Healthy,
        health_message: None,
        conditions: Vec::new(),
        lagging: Vec::new(),
        unmet: Vec::new(),
    }
}

fn ours() -> Operation {
    Operation { id: "0123456789ab/db/1/1".parse().ok(), by: "tiphys".into() }
}

fn by(who: impl Into<Initiator>) -> Operation {
    Operation { id: None, by: who.into() }
}

/// A platform, and what its cluster shows.
struct Case {
    platform: Platform,
    plan: Plan,
    situation: Situation,
}

impl Case {
    fn with(hold: Hold) -> Self {
        let platform = platform(hold);
        let plan = tiphys_plan::plan(&platform, &Scope::Platform).unwrap();
        let seen = plan.apps.iter().map(|_| Some(seen(well()))).collect();
        let situation = Situation { installed: Installed::Platform, seen, ..Situation::default() };
        Case { platform, plan, situation }
    }

    fn new() -> Self {
        Case::with(Hold::DuringRun)
    }

    fn show(mut self, name: &str, seen: Option<Seen>) -> Self {
        let at = self.plan.apps.iter().position(|app| app.app.name.as_str() == name).unwrap();
        self.situation.seen[at] = seen;
        self
    }

    /// One app is not as described above.
    fn change(self, name: &str, change: impl FnOnce(&mut Observation)) -> Self {
        let mut observation = well();
        change(&mut observation);
        self.show(name, Some(seen(observation)))
    }

    fn degraded(self, name: &str) -> Self {
        self.change(name, |seen| seen.health = Health::Degraded)
    }

    /// Since so many seconds.
    fn degraded_at(mut self, name: &str, second: i64) -> Self {
        self = self.degraded(name);
        let at = self.plan.apps.iter().position(|app| app.app.name.as_str() == name).unwrap();
        self.situation.seen[at].as_mut().unwrap().health_since = Some(Stamp(second));
        self
    }

    fn absent(self, name: &str) -> Self {
        self.show(name, None)
    }

    fn hold(mut self, apps: &[&str]) -> Self {
        self.situation.held = apps.iter().map(|&app| app.to_owned()).collect();
        self
    }

    fn lease(mut self, action: &str, expired: bool) -> Self {
        let (holder, action) = ("somebody".to_owned(), action.to_owned());
        self.situation.lease = Some(LeaseSeen { holder, action, expired });
        self
    }

    fn installed(mut self, installed: Installed) -> Self {
        self.situation.installed = installed;
        self
    }

    fn status(&self) -> Status {
        Status::new(&self.plan, &self.plan, &self.situation)
    }

    fn status_of(&self, scope: &str) -> Status {
        let scoped = tiphys_plan::plan(&self.platform, &scope.parse().unwrap()).unwrap();
        Status::new(&self.plan, &scoped, &self.situation)
    }
}

fn seen(observation: Observation) -> Seen {
    let (project, namespace) = ("apps".into(), "argocd".into());
    Seen { observation: observation.into(), health_since: None, project, namespace }
}

/// `db > api web`: a root cause, and what it affects.
fn roots(status: &Status) -> Vec<String> {
    let text = |names: &[AppName]| {
        names.iter().map(|name| format!(" {name}")).collect::<BTreeSet<_>>().into_iter()
    };
    let causes = status.root_causes.iter();
    causes.map(|c| format!("{} >{}", c.app, text(&c.affects).collect::<String>())).collect()
}

#[test]
fn the_phase_is_the_first_that_holds() {
    let deleting = |seen: &mut Observation| {
        seen.deleting = Some(Deleting { since: Stamp(1), finalizers: Vec::new() });
    };
    let always = || Case::with(Hold::Always);
    let cases = vec![
        ("all is well", Case::new(), 3, Authority::ArgoCd),
        ("no Applications", Case::new().installed(Installed::Nothing), 0, Authority::Bootstrap),
        ("no root app", Case::new().installed(Installed::ArgoCd), 1, Authority::Bootstrap),
        ("an app is missing", Case::new().absent("web"), 2, Authority::Orchestration),
        ("an app is held", Case::new().hold(&["web"]), 2, Authority::Orchestration),
        ("somebody else is held", Case::new().hold(&["other"]), 3, Authority::ArgoCd),
        ("always held", always().hold(&["web"]), 3, Authority::Orchestration),
        ("always, but not held", always(), 3, Authority::ArgoCd),
        ("a deployment", Case::new().lease("deploy", false), 2, Authority::Orchestration),
        ("a dead deployment", Case::new().lease("deploy", true), 3, Authority::ArgoCd),
        ("a teardown", Case::new().lease("teardown", false), 4, Authority::Teardown),
        ("a dead teardown", Case::new().lease("teardown", true), 3, Authority::ArgoCd),
        ("being deleted", Case::new().change("web", deleting), 4, Authority::Teardown),
        (
            "torn down half, and the rest missing",
            Case::new().absent("web").lease("teardown", false),
            4,
            Authority::Teardown,
        ),
        (
            "a teardown without a root app",
            Case::new().lease("teardown", false).installed(Installed::ArgoCd),
            1,
            Authority::Bootstrap,
        ),
        ("unhealthy", Case::new().degraded("db"), 3, Authority::ArgoCd),
    ];
    for (what, case, phase, authority) in cases {
        let status = case.status();
        assert_eq!((status.phase.number(), status.authority), (phase, authority), "{what}");
    }
}

#[test]
fn what_is_not_well_is_caused_by_what_it_depends_on() {
    let cases: [(&str, Case, &[&str]); 6] = [
        ("all is well", Case::new(), &[]),
        ("one", Case::new().degraded("web"), &["web >"]),
        ("a chain", Case::new().degraded("web").degraded("api").degraded("db"), &["db > api web"]),
        (
            "a gap: what lies between is well, so neither is the other's cause",
            Case::new().degraded("web").degraded("db"),
            &["db >", "web >"],
        ),
        (
            "two causes, the one that affects more first",
            Case::new().degraded("docs").degraded("db").degraded("api"),
            &["db > api", "docs >"],
        ),
        (
            "what is broken comes before what is on its way",
            Case::new()
                .change("db", |seen| seen.health = Health::Progressing)
                .degraded("api")
                .degraded("docs"),
            &["docs >", "db > api"],
        ),
    ];
    for (what, case, expected) in cases {
        assert_eq!(roots(&case.status()), expected, "{what}");
    }
}

#[test]
fn an_app_names_what_it_waits_for_and_the_chain_to_the_cause() {
    let status = Case::new().degraded("web").degraded("api").degraded("db").status();
    let web = status.apps.iter().find(|app| app.name.as_str() == "web").unwrap();
    let words = |names: &[AppName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words(&web.waiting_for), ["api"]);
    assert_eq!(words(&web.because), ["api", "db"]);
    let well = Case::new().degraded("db").status();
    let api = well.apps.iter().find(|app| app.name.as_str() == "api").unwrap();
    assert!(api.waiting_for.is_empty() && api.because.is_empty(), "{api:?}");
}

#[test]
fn a_scope_shows_its_apps_and_what_they_depend_on() {
    let case = Case::new().degraded("db").degraded("docs");
    let status = case.status_of("app:api");
    let names: Vec<&str> = status.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["db", "api"]);
    assert!(!status.is_well(), "a dependency outside the scope must be Healthy");
    assert_eq!(roots(&status), ["db >"]);
    assert!(case.status_of("app:web").is_well());
    // Outside the scope, only health counts; inside it, the rest too.
    let drifted = Case::new().change("db", |seen| seen.sync = SyncStatus::OutOfSync);
    assert!(drifted.status_of("app:api").is_well());
    assert!(!drifted.status_of("app:db").is_well());
    let broken = Case::new().change("db", |seen| {
        let message = "no YAML".into();
        seen.conditions = vec![Condition { kind: ConditionKind::Comparison, message }];
    });
    assert!(!broken.status_of("app:api").is_well());
}

#[test]
fn operations_that_no_run_asked_for_are_named() {
    let last = |who: Initiator| {
        let mut seen = well();
        seen.last.as_mut().unwrap().operation = by(who);
        seen
    };
    let mut running = well();
    running.operation = Some(by("bob"));
    let mut case = Case::new()
        .show("db", Some(seen(last("alice".into()))))
        .show("api", Some(seen(running)))
        .show("web", Some(seen(last(Initiator::Automated))))
        .show("docs", Some(seen(last(Initiator::Automated))))
        .hold(&["docs"]);
    case.situation.root = Some(seen(last("carol".into())));
    let status = case.status();
    let found: Vec<String> = status
        .bypasses
        .iter()
        .map(|b| {
            format!(
                "{} {} {} {:?}",
                b.app,
                b.by,
                b.running,
                b.finished_at.map(Timestamp::as_second)
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "test-root carol false Some(100)",
            "db alice false Some(100)",
            "api bob true None",
            "docs Argo CD's automated sync false Some(100)",
        ]
    );
}

#[test]
fn a_platform_of_which_nothing_is_there_is_not_deployed() {
    let nothing = ["api", "db", "docs", "web"].into_iter().fold(Case::new(), Case::absent);
    assert!(nothing.status().is_deployed(), "the root app is there");
    let nothing = nothing.installed(Installed::ArgoCd);
    assert!(!nothing.status().is_deployed());
    assert!(Case::new().installed(Installed::ArgoCd).status().is_deployed());
    assert!(Case::new().status().apps.iter().all(|app| app.state == State::Done));
}
