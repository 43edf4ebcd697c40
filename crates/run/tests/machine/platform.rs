//! Platforms in a few words.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::graph::{Edge, Graph};
use tiphys_model::platform::{
    AppType, ArgoCd, Backoff, Dependency, Group, Hold, Policies, Retry, Timeouts,
};
use tiphys_model::{
    App, AppIx, AppName, GroupName, Plan, Platform, PlatformName, Scope, StackName,
};

/// Until a timeout of an app, unless a test says otherwise.
pub(crate) const TIMEOUT: u64 = 300;

/// Apps without limits or retries, kept held: a test states what it is about.
pub(crate) struct Builder {
    apps: Vec<App>,
    policies: Policies,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let policies = Policies {
            hold: Hold::Always,
            concurrency: NonZeroU32::new(100).unwrap(),
            groups: Vec::new(),
            timeout: Duration::from_secs(24 * 3600),
        };
        Builder { apps: Vec::new(), policies }
    }

    /// Adds an app; names come in alphabetical order, and dependencies before dependants.
    pub(crate) fn app(mut self, name: &str, dependencies: &[&str]) -> Self {
        let position = |name: &&str| {
            let at = self.apps.iter().position(|app| app.name.as_str() == *name).unwrap();
            Dependency { app: AppIx::new(at), optional: false }
        };
        self.apps.push(App {
            name: AppName::parse(name).unwrap(),
            stack: StackName::parse("stack").unwrap(),
            app_type: AppType::Simple,
            group: None,
            typical: Duration::from_secs(60),
            dependencies: dependencies.iter().map(position).collect(),
            timeouts: Timeouts {
                sync: Duration::from_secs(TIMEOUT),
                health: Duration::from_secs(TIMEOUT),
            },
            retry: Retry { limit: 0, backoff: Backoff::default() },
            tolerate_drift: Vec::new(),
            health: Vec::new(),
        });
        self
    }

    fn last(&mut self) -> &mut App {
        self.apps.last_mut().unwrap()
    }

    /// What follows an app is about that app.
    pub(crate) fn retry(mut self, limit: u32, duration: u64, factor: u32, max: u64) -> Self {
        let [duration, max] = [duration, max].map(Duration::from_secs);
        self.last().retry = Retry { limit, backoff: Backoff { duration, factor, max } };
        self
    }

    pub(crate) fn timeouts(mut self, sync: u64, health: u64) -> Self {
        let [sync, health] = [sync, health].map(Duration::from_secs);
        self.last().timeouts = Timeouts { sync, health };
        self
    }

    pub(crate) fn typical(mut self, seconds: u64) -> Self {
        self.last().typical = Duration::from_secs(seconds);
        self
    }

    pub(crate) fn in_stack(mut self, stack: &str) -> Self {
        self.last().stack = StackName::parse(stack).unwrap();
        self
    }

    pub(crate) fn in_group(mut self) -> Self {
        self.last().group = Some(0);
        self
    }

    pub(crate) fn group_of(mut self, concurrency: u32) -> Self {
        let name = GroupName::parse("heavy").unwrap();
        let concurrency = NonZeroU32::new(concurrency).unwrap();
        self.policies.groups.push(Group { concurrency, name });
        self
    }

    pub(crate) fn concurrency(mut self, concurrency: u32) -> Self {
        self.policies.concurrency = NonZeroU32::new(concurrency).unwrap();
        self
    }

    pub(crate) fn deadline(mut self, seconds: u64) -> Self {
        self.policies.timeout = Duration::from_secs(seconds);
        self
    }

    pub(crate) fn handed_off(mut self) -> Self {
        self.policies.hold = Hold::DuringRun;
        self
    }

    pub(crate) fn plan(self) -> Arc<Plan> {
        self.plan_of(&Scope::Platform)
    }

    pub(crate) fn plan_of(self, scope: &Scope) -> Arc<Plan> {
        let edges = self.apps.iter().enumerate().flat_map(|(at, app)| {
            let dependant = AppIx::new(at);
            app.dependencies.iter().map(move |d| Edge { dependant, dependency: d.app })
        });
        let graph = Graph::new(self.apps.len(), &edges.collect::<Vec<_>>());
        let platform = Platform {
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
                projects: vec!["platform".to_owned()],
                root_project: "platform-root".to_owned(),
                has_root_app: true,
                access: tiphys_model::platform::ArgoCdAccess::default(),
                server: tiphys_model::ApiServer::default(),
                allowed: tiphys_model::platform::Allowed::default(),
            },
            policies: self.policies,
            apps: self.apps,
            graph,
        };
        Arc::new(tiphys_plan::plan(&platform, scope).unwrap())
    }
}
