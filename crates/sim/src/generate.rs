//! Random platforms for the laws: small graphs of many shapes, and tight limits.

use std::num::NonZeroU32;
use std::time::Duration;

use tiphys_model::graph::{Edge, Graph};
use tiphys_model::platform::{
    Allowed, AppType, ArgoCd, ArgoCdAccess, Backoff, Dependency, Group, Hold, Policies, Retry,
    Timeouts,
};
use tiphys_model::{ApiServer, App, AppIx, AppName, GroupName, Platform, PlatformName, StackName};

use crate::chance::Chance;

/// What a random platform is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub apps: usize,
    /// Nothing ever waits for room.
    pub unlimited: bool,
}

pub(crate) fn name(position: usize) -> AppName {
    AppName::parse(&format!("app-{position:06}")).expect("a letter, a dash and digits are a name")
}

fn nonzero(number: u64) -> NonZeroU32 {
    u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// Draws a platform. Apps depend on apps with smaller numbers, mostly near ones.
#[must_use]
pub fn platform(shape: Shape, chance: &mut Chance) -> Platform {
    let groups: Vec<Group> = ["heavy", "light"]
        .into_iter()
        .map(|name| Group {
            name: GroupName::parse(name).expect("a word is a name"),
            concurrency: nonzero(chance.between(1, 3)),
        })
        .collect();
    let stack = StackName::parse("stack").expect("a word is a name");
    let reach = chance.between(1, 30);
    let mut edges = Vec::new();
    let apps: Vec<App> = (0..shape.apps)
        .map(|position| {
            let dependencies = dependencies(position, reach, chance);
            let dependant = AppIx::new(position);
            edges.extend(dependencies.iter().map(|d| Edge { dependant, dependency: d.app }));
            let typical = Duration::from_secs(chance.between(10, 300));
            let grouped = !shape.unlimited && chance.once_in(4);
            App {
                name: name(position),
                stack: stack.clone(),
                app_type: AppType::Simple,
                group: grouped.then(|| usize::from(chance.once_in(2))),
                typical,
                dependencies,
                timeouts: Timeouts {
                    sync: typical * 3,
                    health: typical * 3 + Duration::from_secs(60),
                },
                retry: Retry {
                    limit: u32::try_from(chance.between(0, 3)).unwrap_or_default(),
                    backoff: Backoff {
                        duration: Duration::from_secs(chance.between(0, 20)),
                        ..Backoff::default()
                    },
                },
                tolerate_drift: Vec::new(),
                health: Vec::new(),
            }
        })
        .collect();
    let concurrency = if shape.unlimited { shape.apps as u64 } else { chance.between(1, 8) };
    Platform {
        name: PlatformName::parse("random").expect("a word is a name"),
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
            access: ArgoCdAccess::Api,
            server: ApiServer::default(),
            allowed: Allowed::default(),
        },
        policies: Policies {
            hold: if chance.once_in(5) { Hold::Always } else { Hold::DuringRun },
            concurrency: nonzero(concurrency),
            groups,
            timeout: Duration::from_secs(24 * 3600),
        },
        graph: Graph::new(apps.len(), &edges),
        apps,
    }
}

fn dependencies(position: usize, reach: u64, chance: &mut Chance) -> Vec<Dependency> {
    if position == 0 {
        return Vec::new();
    }
    let mut found: Vec<usize> = (0..chance.between(0, 3))
        .filter_map(|_| {
            let back = chance.between(1, reach.min(position as u64));
            position.checked_sub(usize::try_from(back).ok()?)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let optional = chance.once_in(6);
    found.into_iter().map(|at| Dependency { app: AppIx::new(at), optional }).collect()
}
