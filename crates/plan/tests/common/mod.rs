//! Random platforms: every field varies, edges go any way that makes no cycle.
//!
//! The tests of `spec` use this file too, to write such platforms as YAML and read them back.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use tiphys_model::api_server::{ApiServer, ServerAddress, ServerTls};
use tiphys_model::criterion::{HttpCriterion, ResourceCriterion, ServiceCriterion};
use tiphys_model::graph::Edge;
use tiphys_model::platform::{
    Allowed, AppType, ArgoCd, ArgoCdAccess, Backoff, Dependency, Destination, DestinationCluster,
    Environment, Group, GroupKind, Hold, Policies, Retry, Source, SourceTool, TeardownPolicy,
    Timeouts, WorkflowMode,
};
use tiphys_model::{
    App, AppIx, AppName, Criterion, Graph, GroupName, NamespaceName, Platform, PlatformName, Scope,
    SecretName, StackName,
};

/// Enough for forks, joins and full groups; few enough that a failure can be drawn on paper.
const MOST_APPS: usize = 12;
const STACKS: usize = 4;

/// A platform, and a scope that is in it.
pub(crate) fn scoped_platforms() -> impl Strategy<Value = (Platform, Scope)> {
    (platforms(), any::<Index>(), 0..4u8).prop_map(|(platform, index, kind)| {
        let app = index.get(&platform.apps);
        let scope = match kind {
            0 => Scope::Platform,
            1 => Scope::stack(&app.stack),
            2 => Scope::app(&app.name),
            _ => {
                [Scope::stack(&app.stack), Scope::app(&platform.apps[0].name)].into_iter().collect()
            }
        };
        (platform, scope)
    })
}

pub(crate) fn platforms() -> impl Strategy<Value = Platform> {
    let head = (option::of(environment()), option::of(source()), argocd(), policies(), teardown());
    (head, 1..=MOST_APPS).prop_flat_map(
        |((environment, source, argocd, policies, teardown), apps)| {
            let groups = policies.groups.len();
            let platform = move |apps: Vec<App>| Platform {
                name: PlatformName::parse("random").unwrap(),
                environment: environment.clone(),
                source: source.clone(),
                bootstrap: None,
                argocd: ArgoCd { has_root_app: source.is_some(), ..argocd.clone() },
                policies: policies.clone(),
                teardown: teardown.clone(),
                workflows: WorkflowMode::default(),
                deploy: tiphys_model::DeployPolicy::default(),
                triggers: Vec::new(),
                graph: graph(&apps),
                apps,
            };
            (vec(app(groups), apps), edges(apps)).prop_map(move |(mut apps, edges)| {
                for (at, app) in apps.iter_mut().enumerate() {
                    app.name = AppName::parse(&format!("app-{at:02}")).unwrap();
                    app.dependencies.clone_from(&edges[at]);
                }
                platform(apps)
            })
        },
    )
}

/// The graph that the dependencies of apps make.
pub(crate) fn graph(apps: &[App]) -> Graph {
    let edges = apps.iter().enumerate().flat_map(|(at, app)| {
        let dependencies = app.dependencies.iter();
        dependencies.map(move |d| Edge { dependant: AppIx::new(at), dependency: d.app })
    });
    Graph::new(apps.len(), &edges.collect::<Vec<Edge>>())
}

/// The dependencies of each app. A shuffled order decides which way edges may point, so that
/// the order of names says nothing about the order of starts.
fn edges(apps: usize) -> impl Strategy<Value = Vec<Vec<Dependency>>> {
    let order = Just((0..apps).collect::<Vec<usize>>()).prop_shuffle();
    // `Some(optional)` is an edge.
    let cell = option::weighted(0.25, any::<bool>());
    (order, vec(vec(cell, apps), apps)).prop_map(|(order, cells)| {
        let row = |(at, row): (usize, Vec<Option<bool>>)| {
            let found = row.into_iter().enumerate().filter(|(to, _)| order[*to] < order[at]);
            found
                .filter_map(|(to, cell)| Some(Dependency { app: AppIx::new(to), optional: cell? }))
                .collect()
        };
        cells.into_iter().enumerate().map(row).collect()
    })
}

fn app(groups: usize) -> impl Strategy<Value = App> {
    let group = option::of(any::<Index>())
        .prop_map(move |index| index.filter(|_| groups > 0).map(|index| index.index(groups)));
    let app_type = proptest::sample::select(AppType::ALL.to_vec());
    let drift = btree_set("[A-Z][a-z]{0,3}/[a-z]{1,3}", 0..3);
    let policies = (seconds(1), seconds(1), retry());
    (0..STACKS, app_type, group, seconds(0), policies, drift, vec(criterion(), 0..3)).prop_map(
        |(stack, app_type, group, typical, (sync, health, retry), drift, criteria)| App {
            // The caller knows the position.
            name: AppName::parse("nameless").unwrap(),
            stack: StackName::parse(&format!("stack-{stack}")).unwrap(),
            app_type,
            group,
            typical,
            dependencies: Vec::new(),
            timeouts: Timeouts { sync, health },
            retry,
            tolerate_drift: drift.into_iter().collect(),
            health: criteria,
        },
    )
}

/// Small numbers meet often, and what happens at the same moment is where orders go wrong.
fn seconds(least: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![least..5, least..5000].prop_map(Duration::from_secs)
}

fn policies() -> impl Strategy<Value = Policies> {
    let limit = || (1..5u32).prop_map(|limit| NonZeroU32::new(limit).unwrap());
    let hold = prop_oneof![Just(Hold::DuringRun), Just(Hold::Always)];
    (hold, limit(), vec(limit(), 0..3), seconds(1)).prop_map(
        |(hold, concurrency, limits, timeout)| {
            let group = |(at, concurrency)| Group {
                name: GroupName::parse(&format!("group-{at}")).unwrap(),
                concurrency,
            };
            let groups = limits.into_iter().enumerate().map(group).collect();
            Policies { hold, concurrency, groups, timeout }
        },
    )
}

fn retry() -> impl Strategy<Value = Retry> {
    (0..=100u32, seconds(0), 1..=100u32, seconds(0)).prop_map(|(limit, duration, factor, more)| {
        Retry { limit, backoff: Backoff { duration, factor, max: duration + more } }
    })
}

/// Text as people write it, with what YAML would take for something else: `true`, `12`, `a: b`.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "[ -~äß→]{1,12}", "(true|null|~|[0-9]{1,3}|1e3|a: b|- a|#a)"]
}

/// A condition that compares with any text.
fn expression() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("obj.a == {text:?}"))
}

fn criterion() -> impl Strategy<Value = Criterion> {
    let resource = (text(), expression(), text(), text(), option::of(text())).prop_map(
        |(api_version, expression, kind, name, namespace)| {
            Criterion::Resource(ResourceCriterion {
                api_version,
                expression,
                kind,
                name,
                namespace,
            })
        },
    );
    let service = || {
        (option::of(text()), 1..=u16::MAX, text())
            .prop_map(|(namespace, port, service)| ServiceCriterion { namespace, port, service })
    };
    let http = (100..600u16, option::of(text()), text(), 1..=u16::MAX, text(), any::<bool>())
        .prop_map(|(expect, namespace, path, port, service, tls)| {
            Criterion::Http(HttpCriterion { expect, namespace, path, port, service, tls })
        });
    prop_oneof![
        resource,
        http,
        service().prop_map(Criterion::Tcp),
        service().prop_map(Criterion::Postgres),
        service().prop_map(Criterion::Redis),
    ]
}

fn environment() -> impl Strategy<Value = Environment> {
    (text(), option::of(text())).prop_map(|(name, domain)| Environment { name, domain })
}

fn source() -> impl Strategy<Value = Source> {
    let tool = prop_oneof![
        Just(SourceTool::Chart),
        any::<bool>().prop_map(|recurse| SourceTool::Directory { recurse })
    ];
    (text(), text(), text(), tool).prop_map(|(repo_url, target_revision, path, tool)| Source {
        repo_url,
        target_revision,
        path,
        tool,
    })
}

fn argocd() -> impl Strategy<Value = ArgoCd> {
    let access = prop_oneof![Just(ArgoCdAccess::Api), Just(ArgoCdAccess::Kubernetes)];
    let projects = btree_set(text(), 1..3).prop_map(|all| all.into_iter().collect());
    let others = btree_set("[a-z]{1,8}", 0..3);
    (text(), others, projects, text(), access, server(), allowed()).prop_map(
        |(namespace, others, projects, root_project, access, server, allowed)| ArgoCd {
            application_namespaces: others
                .iter()
                .filter(|other| **other != namespace)
                .map(|other| NamespaceName::parse(other).unwrap())
                .collect(),
            namespace,
            projects,
            root_project,
            has_root_app: true,
            access,
            // Who does not act through the API reaches no server.
            server: if access == ArgoCdAccess::Api { server } else { ApiServer::default() },
            allowed,
        },
    )
}

fn server() -> impl Strategy<Value = ApiServer> {
    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let host = prop_oneof!["[a-z0-9]{1,9}(\\.[a-z]{1,9})?", Just("2001:db8::1".to_owned())];
    let address = (host, 1..=u16::MAX).prop_map(|(host, port)| ServerAddress { host, port });
    let tls = prop_oneof![
        Just(ServerTls::Default),
        Just(ServerTls::Authority(PEM.to_owned())),
        Just(ServerTls::Off),
    ];
    let secret = "[a-z0-9]{1,9}".prop_map(|name| SecretName::parse(&name).unwrap());
    (option::of(address), tls, option::of("(/[a-z]{1,9}){0,2}"), option::of(secret)).prop_map(
        |(address, tls, root_path, token_secret)| ApiServer {
            address,
            tls,
            root_path,
            token_secret,
        },
    )
}

fn teardown() -> impl Strategy<Value = TeardownPolicy> {
    let kind = ("([a-z.]{1,12})?", "[A-Z][a-z]{0,8}");
    let kind = kind.prop_map(|(group, kind)| GroupKind { group, kind });
    vec(kind, 0..3).prop_map(|disposable| TeardownPolicy { disposable })
}

fn allowed() -> impl Strategy<Value = Allowed> {
    let cluster = prop_oneof![
        text().prop_map(DestinationCluster::Server),
        text().prop_map(DestinationCluster::Name)
    ];
    let destination =
        (cluster, text()).prop_map(|(cluster, namespace)| Destination { cluster, namespace });
    let kind = ("([a-z.*]{1,12})?", "[A-Z*][a-z]{0,8}")
        .prop_map(|(group, kind)| GroupKind { group, kind });
    let lists = (
        option::of(vec(text(), 0..3)),
        option::of(vec(destination, 0..3)),
        option::of(vec(kind, 0..3)),
    );
    lists.prop_map(|(sources, destinations, cluster_kinds)| Allowed {
        sources,
        destinations,
        cluster_kinds,
    })
}
