//! A platform as the YAML that describes it, field by field.

use tiphys_model::api_server::{ApiServer, ServerTls};
use tiphys_model::criterion::ServiceCriterion;
use tiphys_model::duration;
use tiphys_model::platform::{
    Allowed, ArgoCdAccess, Dependency, Destination, DestinationCluster, GroupKind, Hold, Policies,
    Retry, SourceTool, TeardownPolicy,
};
use tiphys_model::{App, Criterion, Platform, StackName};

use crate::yaml::Yaml;

pub(crate) fn metadata(platform: &Platform) -> Yaml {
    Yaml::map([("name", Yaml::plain(&platform.name))])
}

/// All fields of the spec but `stacks`.
pub(crate) fn head(platform: &Platform) -> Vec<(String, Yaml)> {
    let Policies { hold, concurrency, groups, timeout } = &platform.policies;
    let argocd = &platform.argocd;
    let groups = groups.iter().map(|group| {
        let concurrency = Yaml::plain(group.concurrency);
        Yaml::map([("name", Yaml::plain(&group.name)), ("concurrency", concurrency)])
    });
    let hold = match hold {
        Hold::DuringRun => "during-run",
        Hold::Always => "always",
    };
    let mut settings = vec![
        field("namespace", Yaml::quoted(&argocd.namespace)),
        match &argocd.projects[..] {
            [project] => field("project", Yaml::quoted(project)),
            several => {
                field("projects", Yaml::List(several.iter().map(|p| Yaml::quoted(p)).collect()))
            }
        },
        field("rootProject", Yaml::quoted(&argocd.root_project)),
        field(
            "access",
            Yaml::plain(match argocd.access {
                ArgoCdAccess::Api => "api",
                ArgoCdAccess::Kubernetes => "kubernetes",
            }),
        ),
    ];
    settings.extend(server(&argocd.server));
    if !argocd.application_namespaces.is_empty() {
        let namespaces = argocd.application_namespaces.iter().map(Yaml::plain).collect();
        settings.push(field("applicationNamespaces", Yaml::List(namespaces)));
    }
    settings.extend(allowed(&argocd.allowed));
    let mut fields = vec![
        field("hold", Yaml::plain(hold)),
        field("concurrency", Yaml::plain(concurrency)),
        field("groups", Yaml::Set(groups.collect())),
        field("timeout", time(*timeout)),
        field("argocd", Yaml::Map(settings)),
    ];
    let TeardownPolicy { disposable } = &platform.teardown;
    if !disposable.is_empty() {
        let disposable = Yaml::List(disposable.iter().map(kind).collect());
        fields.push(field("teardown", Yaml::map([("disposable", disposable)])));
    }
    if let Some(environment) = &platform.environment {
        let mut given = vec![field("name", Yaml::quoted(&environment.name))];
        given.extend(text("domain", environment.domain.as_ref()));
        fields.push(field("environment", Yaml::Map(given)));
    }
    if let Some(source) = &platform.source {
        let mut given = vec![
            field("repoURL", Yaml::quoted(&source.repo_url)),
            field("targetRevision", Yaml::quoted(&source.target_revision)),
            field("path", Yaml::quoted(&source.path)),
        ];
        if let SourceTool::Directory { recurse } = source.tool {
            let recurse = Yaml::Plain(recurse.to_string());
            given.push(field("directory", Yaml::map([("recurse", recurse)])));
        }
        fields.push(field("source", Yaml::Map(given)));
    }
    fields
}

fn server(server: &ApiServer) -> Vec<(String, Yaml)> {
    let ApiServer { address, tls, root_path, token_secret } = server;
    let mut fields = Vec::new();
    fields.extend(address.as_ref().map(|at| field("server", Yaml::quoted(&at.to_string()))));
    // No path at all is written, too.
    let path = root_path.as_ref().map(|path| if path.is_empty() { "/" } else { path });
    fields.extend(path.map(|path| field("rootPath", Yaml::quoted(path))));
    fields.extend(
        token_secret.as_ref().map(|name| field("tokenSecret", Yaml::quoted(name.as_str()))),
    );
    match tls {
        ServerTls::Default => {}
        ServerTls::Authority(pem) => fields.push(field("ca", Yaml::quoted(pem))),
        ServerTls::Off => fields.push(field("insecure", Yaml::plain("true"))),
    }
    fields
}

fn allowed(allowed: &Allowed) -> Vec<(String, Yaml)> {
    let destination = |destination: &Destination| {
        let (key, cluster) = match &destination.cluster {
            DestinationCluster::Server(server) => ("server", server),
            DestinationCluster::Name(name) => ("name", name),
        };
        let namespace = Yaml::quoted(&destination.namespace);
        Yaml::map([(key, Yaml::quoted(cluster)), ("namespace", namespace)])
    };
    let Allowed { sources, destinations, cluster_kinds } = allowed;
    let sources = sources.as_ref().map(|all| all.iter().map(|one| Yaml::quoted(one)).collect());
    let destinations = destinations.as_ref().map(|all| all.iter().map(destination).collect());
    let kinds = cluster_kinds.as_ref().map(|all| all.iter().map(kind).collect());
    let lists = [("sources", sources), ("destinations", destinations), ("clusterKinds", kinds)];
    let given = lists.into_iter().filter_map(|(key, list)| Some(field(key, Yaml::List(list?))));
    given.collect()
}

fn kind(GroupKind { group, kind }: &GroupKind) -> Yaml {
    match group.as_str() {
        "" => Yaml::quoted(kind),
        group => Yaml::quoted(&format!("{group}/{kind}")),
    }
}

/// The stacks that these apps stand in.
pub(crate) fn stacks<'a>(platform: &Platform, apps: impl IntoIterator<Item = &'a App>) -> Yaml {
    let apps: Vec<&App> = apps.into_iter().collect();
    let mut names: Vec<_> = apps.iter().map(|app| &app.stack).collect();
    names.sort();
    names.dedup();
    let stack = |name: &StackName| {
        let members = apps.iter().filter(|member| member.stack == *name);
        let members = members.map(|member| app(platform, member)).collect();
        Yaml::map([("name", Yaml::plain(name)), ("apps", Yaml::Set(members))])
    };
    Yaml::Set(names.into_iter().map(stack).collect())
}

fn app(platform: &Platform, app: &App) -> Yaml {
    let timeouts =
        Yaml::map([("sync", time(app.timeouts.sync)), ("health", time(app.timeouts.health))]);
    let drift = app.tolerate_drift.iter().map(|drift| Yaml::quoted(drift));
    let edges = app.dependencies.iter().map(|edge| dependency(platform, *edge));
    let mut fields = vec![
        field("name", Yaml::plain(&app.name)),
        field("type", Yaml::plain(app.app_type.as_str())),
        field("typical", time(app.typical)),
        field("dependsOn", Yaml::Set(edges.collect())),
        field("timeouts", timeouts),
        field("retry", retry(app.retry)),
        field("tolerateDrift", Yaml::Set(drift.collect())),
        field("health", Yaml::List(app.health.iter().map(criterion).collect())),
    ];
    if let Some(group) = app.group {
        fields.push(field("group", Yaml::plain(&platform.policies.groups[group].name)));
    }
    Yaml::Map(fields)
}

fn dependency(platform: &Platform, dependency: Dependency) -> Yaml {
    let name = Yaml::plain(&platform.apps[dependency.app.position()].name);
    // Both spellings of a plain dependency shall occur.
    if !dependency.optional && dependency.app.position().is_multiple_of(2) {
        return name;
    }
    Yaml::map([("app", name), ("optional", Yaml::plain(dependency.optional))])
}

fn retry(retry: Retry) -> Yaml {
    let backoff = Yaml::map([
        ("duration", time(retry.backoff.duration)),
        ("factor", Yaml::plain(retry.backoff.factor)),
        ("max", time(retry.backoff.max)),
    ]);
    Yaml::map([("limit", Yaml::plain(retry.limit)), ("backoff", backoff)])
}

fn criterion(criterion: &Criterion) -> Yaml {
    let (kind, mut fields, namespace) = match criterion {
        Criterion::Resource(r) => {
            let fields = vec![
                field("apiVersion", Yaml::quoted(&r.api_version)),
                field("kind", Yaml::quoted(&r.kind)),
                field("name", Yaml::quoted(&r.name)),
                field("expression", Yaml::quoted(&r.expression)),
            ];
            ("resource", fields, &r.namespace)
        }
        Criterion::Tcp(t) => ("tcp", service(t), &t.namespace),
        Criterion::Postgres(p) => ("postgres", service(p), &p.namespace),
        Criterion::Redis(r) => ("redis", service(r), &r.namespace),
        Criterion::Http(h) => {
            let fields = vec![
                field("service", Yaml::quoted(&h.service)),
                field("port", Yaml::plain(h.port)),
                field("path", Yaml::quoted(&h.path)),
                field("expect", Yaml::plain(h.expect)),
                field("tls", Yaml::plain(h.tls)),
            ];
            ("http", fields, &h.namespace)
        }
    };
    fields.extend(text("namespace", namespace.as_ref()));
    Yaml::map([(kind, Yaml::Map(fields))])
}

fn service(at: &ServiceCriterion) -> Vec<(String, Yaml)> {
    vec![field("service", Yaml::quoted(&at.service)), field("port", Yaml::plain(at.port))]
}

fn field(key: &str, value: Yaml) -> (String, Yaml) {
    (key.to_owned(), value)
}

fn text(key: &str, value: Option<&String>) -> Option<(String, Yaml)> {
    value.map(|value| field(key, Yaml::quoted(value)))
}

fn time(duration: std::time::Duration) -> Yaml {
    Yaml::plain(duration::format(duration))
}
