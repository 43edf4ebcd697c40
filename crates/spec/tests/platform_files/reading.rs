//! However its files are sorted, split or worded, a platform is read as the same value.

use proptest::collection::vec;
use proptest::prelude::*;
use tiphys_model::platform::{AppType, ArgoCd, Policies, Retry, Timeouts};
use tiphys_model::{App, Platform, PlatformName, Scope, StackName};
use tiphys_plan::PlanDocument;
use tiphys_spec::SyncWaves;

use crate::random::{platforms, scoped_platforms};
use crate::write;
use crate::yaml::{Yaml, directory, sources};

/// Numbers that decide all orders of one rendering.
fn orders() -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 50)
}

/// Shuffles fields, and items whose order means nothing, all the way down.
fn shuffle(yaml: &mut Yaml, order: &mut impl Iterator<Item = u32>) {
    match yaml {
        Yaml::Plain(_) | Yaml::Quoted(_) => {}
        Yaml::List(items) => {
            for item in items {
                shuffle(item, order);
            }
        }
        Yaml::Set(items) => {
            for item in items.iter_mut() {
                shuffle(item, order);
            }
            items.sort_by_cached_key(|_| order.next());
        }
        Yaml::Map(fields) => {
            for (_, value) in fields.iter_mut() {
                shuffle(value, order);
            }
            fields.sort_by_cached_key(|_| order.next());
        }
    }
}

/// The platform over the files of a directory: one of them has the head, each has some of the
/// apps. The parts without the head take every form that they may have.
fn files(platform: &Platform, files: usize, orders: &[u32]) -> Vec<String> {
    let mut order = orders.iter().copied().cycle();
    let mut pick = |most: usize| order.next().unwrap() as usize % most;
    let head = pick(files);
    let home: Vec<usize> = platform.apps.iter().map(|_| pick(files)).collect();
    let forms: Vec<usize> = (0..files).map(|_| pick(3)).collect();
    let file = |number: usize| {
        let apps: Vec<&App> = platform
            .apps
            .iter()
            .zip(&home)
            .filter(|(_, home)| **home == number)
            .map(|(app, _)| app)
            .collect();
        let no_apps = apps.is_empty();
        let stacks = ("stacks".to_owned(), write::stacks(platform, apps));
        if number == head {
            let mut spec = write::head(platform);
            spec.extend((!no_apps).then_some(stacks));
            return document(platform, spec);
        }
        if forms[number] == 0 {
            return Yaml::Map(vec![stacks]);
        }
        let mut part = document(platform, vec![stacks]);
        if let (Yaml::Map(fields), 1) = (&mut part, forms[number]) {
            fields.retain(|(name, _)| name != "metadata");
        }
        part
    };
    let mut documents: Vec<Yaml> = (0..files).map(file).collect();
    for document in &mut documents {
        shuffle(document, &mut order);
    }
    documents.iter().map(Yaml::text).collect()
}

fn document(platform: &Platform, spec: Vec<(String, Yaml)>) -> Yaml {
    Yaml::map([
        ("apiVersion", Yaml::plain("tiphys.dev/v1alpha1")),
        ("kind", Yaml::plain("Platform")),
        ("metadata", write::metadata(platform)),
        ("spec", Yaml::Map(spec)),
    ])
}

/// What annotations on Applications can say of a platform; the rest has its defaults.
fn annotated(platform: Platform) -> Platform {
    let text = str::to_owned;
    let bare = |app: App| App {
        // An Application without the annotation belongs to `default`.
        stack: if app.stack.as_str() == "stack-0" { default_stack() } else { app.stack },
        group: None,
        typical: app.app_type.typical(),
        timeouts: Timeouts { sync: app.app_type.timeout(), health: app.app_type.timeout() },
        retry: Retry::default(),
        tolerate_drift: Vec::new(),
        health: Vec::new(),
        ..app
    };
    Platform {
        environment: None,
        source: None,
        bootstrap: None,
        argocd: ArgoCd {
            namespace: text("argocd"),
            application_namespaces: Vec::new(),
            projects: vec![text("platform")],
            root_project: text("platform-root"),
            has_root_app: false,
            access: tiphys_model::platform::ArgoCdAccess::default(),
            server: tiphys_model::ApiServer::default(),
            allowed: tiphys_model::platform::Allowed::default(),
        },
        policies: Policies {
            hold: tiphys_model::platform::Hold::DuringRun,
            concurrency: std::num::NonZeroU32::new(16).unwrap(),
            groups: Vec::new(),
            timeout: std::time::Duration::from_secs(3 * 3600),
        },
        teardown: tiphys_model::platform::TeardownPolicy::default(),
        workflows: tiphys_model::platform::WorkflowMode::default(),
        deploy: tiphys_model::DeployPolicy::default(),
        triggers: Vec::new(),
        apps: platform.apps.into_iter().map(bare).collect(),
        ..platform
    }
}

fn default_stack() -> StackName {
    StackName::parse("default").unwrap()
}

fn application(platform: &Platform, app: &App) -> Yaml {
    let name = |d: &tiphys_model::platform::Dependency| {
        let mark = if d.optional { "?" } else { "" };
        format!("{}{mark}", platform.apps[d.app.position()].name)
    };
    let edges: Vec<String> = app.dependencies.iter().map(name).collect();
    let mut annotations = vec![
        ("tiphys.dev/type".to_owned(), Yaml::plain(app.app_type.as_str())),
        ("example.org/other".to_owned(), Yaml::plain("ours it is not")),
    ];
    // Without edges it may be absent, or empty as templates leave it.
    if !edges.is_empty() || app.app_type == AppType::Simple {
        annotations.push(("tiphys.dev/depends-on".to_owned(), Yaml::quoted(&edges.join(", "))));
    }
    if app.stack != default_stack() {
        annotations.push(("tiphys.dev/stack".to_owned(), Yaml::plain(&app.stack)));
    }
    let metadata = Yaml::map([
        ("name", Yaml::plain(&app.name)),
        ("namespace", Yaml::plain("argocd")),
        ("annotations", Yaml::Map(annotations)),
    ]);
    Yaml::map([
        ("apiVersion", Yaml::plain("argoproj.io/v1alpha1")),
        ("kind", Yaml::plain("Application")),
        ("metadata", metadata),
        ("spec", Yaml::map([("project", Yaml::plain("platform"))])),
    ])
}

/// As `kubectl get -o yaml` prints several objects.
fn list(items: &[Yaml]) -> Yaml {
    Yaml::map([
        ("apiVersion", Yaml::plain("v1")),
        ("kind", Yaml::plain("List")),
        ("items", Yaml::List(items.to_vec())),
    ])
}

proptest! {
    #[test]
    fn order_and_files_do_not_matter(
        (platform, scope) in scoped_platforms(),
        count in 1..4usize,
        orders in orders(),
    ) {
        let texts = files(&platform, count, &orders);
        let read = tiphys_spec::platform(&directory(&texts));
        prop_assert_eq!(read.as_ref(), Ok(&platform), "{}", texts.join("---\n"));
        let plan_bytes = |platform: &Platform| {
            let plan = tiphys_plan::plan(platform, &scope).unwrap();
            serde_json::to_vec(&PlanDocument::new(&plan)).unwrap()
        };
        prop_assert_eq!(plan_bytes(&read.unwrap()), plan_bytes(&platform));
    }

    #[test]
    fn annotations_and_platform_files_say_the_same(platform in platforms(), orders in orders()) {
        let platform = annotated(platform);
        let mut order = orders.into_iter().cycle();
        let apps = platform.apps.iter();
        let mut manifests: Vec<Yaml> = apps.map(|app| application(&platform, app)).collect();
        // Of another kind, without a name, with an annotation that would be wrong on an app.
        let other = Yaml::map([("tiphys.dev/unheard-of", Yaml::plain("x"))]);
        manifests.push(Yaml::map([
            ("kind", Yaml::plain("ConfigMap")),
            ("metadata", Yaml::map([("annotations", other)])),
        ]));
        let mut manifests = Yaml::Set(manifests);
        shuffle(&mut manifests, &mut order);
        let Yaml::Set(manifests) = manifests else { unreachable!("it is a set") };
        // Every other file has its manifests in a list, the rest as documents.
        let file = |(number, file): (usize, &[Yaml])| match number % 2 {
            0 => file.iter().map(Yaml::text).collect::<Vec<_>>().join("---\n"),
            _ => list(file).text(),
        };
        let texts: Vec<String> = manifests.chunks(3).enumerate().map(file).collect();
        let read = tiphys_spec::platform_from_applications(
            platform.name.clone(),
            SyncWaves::Ignored,
            &sources(&texts),
        );
        prop_assert_eq!(read, Ok(platform.clone()));
        let file = document(&platform, vec![
            ("stacks".to_owned(), write::stacks(&platform, &platform.apps)),
        ]);
        prop_assert_eq!(tiphys_spec::platform(&sources(&[file.text()])), Ok(platform));
    }
}

#[test]
fn what_is_not_given_has_the_documented_default() {
    let short = "
        apiVersion: tiphys.dev/v1alpha1
        kind: Platform
        metadata: { name: p }
        spec:
          source: { repoURL: r, path: p }
          stacks: [{ name: s, apps: [
            { name: a },
            { name: b, type: operator, health: [http: { service: s, port: 1, path: / }] },
            { name: c, type: ceph-cluster, retry: { limit: 3 } },
            { name: d, type: database-cluster, retry: { backoff: { factor: 3 } } },
            { name: e, type: vault, dependsOn: [{ app: a }], timeouts: { sync: 1m } },
          ] }]
    ";
    let retry = "limit: 2, backoff: { duration: 10s, factor: 2, max: 2m }";
    let long = format!(
        "
        apiVersion: tiphys.dev/v1alpha1
        kind: Platform
        metadata: {{ name: p }}
        spec:
          source: {{ repoURL: r, path: p, targetRevision: HEAD }}
          argocd: {{ namespace: argocd, project: platform, rootProject: platform-root }}
          hold: during-run
          concurrency: 16
          groups: []
          timeout: 3h
          stacks: [{{ name: s, apps: [
            {{ name: a, type: simple, typical: 1m, timeouts: {{ sync: 5m, health: 5m }},
              dependsOn: [], tolerateDrift: [], health: [], retry: {{ {retry} }} }},
            {{ name: b, type: operator, typical: 2m, timeouts: {{ sync: 10m, health: 10m }},
              health: [http: {{ service: s, port: 1, path: /, expect: 200 }}] }},
            {{ name: c, type: ceph-cluster, typical: 18m, timeouts: {{ sync: 30m, health: 30m }},
              retry: {{ limit: 3, backoff: {{ duration: 10s, factor: 2, max: 2m }} }} }},
            {{ name: d, type: database-cluster, typical: 5m, timeouts: {{ sync: 15m, health: 15m }},
              retry: {{ limit: 2, backoff: {{ duration: 10s, factor: 3, max: 2m }} }} }},
            {{ name: e, type: vault, typical: 5m, timeouts: {{ sync: 1m, health: 15m }},
              dependsOn: [{{ app: a, optional: false }}] }},
          ] }}]
        "
    );
    let read = |text: &str| tiphys_spec::platform(&sources(&[text])).unwrap();
    assert_eq!(read(short), read(&long));
}

#[test]
fn a_file_alone_is_whole_and_a_directory_may_be_in_parts() {
    let head = "{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {name: p}, spec: {}}";
    let part = "{stacks: [{name: s, apps: [{name: a}]}]}";
    let whole = head.replace("{}", part);
    let alone = tiphys_spec::platform(&sources(&[&whole])).unwrap();
    for files in [vec![whole.as_str()], vec![head, part], vec![part, head]] {
        assert_eq!(tiphys_spec::platform(&directory(&files)).as_ref(), Ok(&alone), "{files:?}");
    }
    let refusals = |sources| -> Vec<String> {
        let problems = tiphys_spec::platform(&sources).unwrap_err().into_sorted();
        problems.into_iter().map(|problem| problem.title).collect()
    };
    let no_claims = ["apiVersion", "kind"].map(|field| format!("`{field}` is missing"));
    assert_eq!(refusals(sources(&[part])), no_claims);
    assert_eq!(refusals(directory(&[part])), ["the platform has no name"]);
    assert_eq!(refusals(sources(&[head])), ["a platform's spec needs the field `stacks`"]);
    assert_eq!(refusals(directory(&[head])), ["the platform has no apps"]);
}

#[test]
fn an_optional_dependency_on_an_absent_app_is_no_edge() {
    let text = |edges: &str| {
        format!(
            "{{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {{name: p}}, spec: \
             {{stacks: [{{name: s, apps: [{{name: a, dependsOn: [{edges}]}}]}}]}}}}"
        )
    };
    let read = |edges| tiphys_spec::platform(&sources(&[text(edges)])).unwrap();
    assert_eq!(read("{app: absent, optional: true}"), read(""));
    let plan = tiphys_plan::plan(&read(""), &Scope::Platform).unwrap();
    assert_eq!(plan.graph.dependencies(tiphys_model::AppIx::new(0)), []);
}

#[test]
fn a_value_that_quotes_would_not_help_has_a_hint_that_does() {
    let refusal = |spec: &str| {
        let head = "apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {name: p}";
        let text = format!("{{{head}, spec: {{{spec}}}}}");
        let problem = tiphys_spec::platform(&sources(&[text])).unwrap_err().into_sorted().remove(0);
        (problem.title, problem.hint.unwrap())
    };
    let stacks = |name: &str| format!("stacks: [{{name: s, apps: [{{name: {name}}}]}}]");
    let (title, hint) = refusal(&format!("hold: true, {}", stacks("a")));
    assert_eq!(title, "expected a hold policy, found `true`");
    assert_eq!(hint, "use one of: during-run, always");
    let (title, hint) = refusal(&format!("timeout: true, {}", stacks("a")));
    assert_eq!(title, "expected a duration, found `true`");
    assert!(hint.contains("`90s`"), "{hint}");
    // A Cyrillic letter that looks like a Latin one.
    let (_, hint) = refusal(&stacks("v\u{430}ult"));
    let letter = "replace '\u{430}' (U+0430) with lower-case ASCII letters, digits or dashes";
    assert_eq!(hint, letter);
}

#[test]
fn separators_and_comments_around_the_document_are_nothing() {
    let platform = "{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {name: p}, \
        spec: {stacks: [{name: s, apps: [{name: a}]}]}}";
    let read = |text: String| tiphys_spec::platform(&sources(&[text])).unwrap();
    let alone = read(platform.to_owned());
    assert_eq!(read(format!("---\n{platform}\n---\n")), alone);
    assert_eq!(read(format!("--- # a\n# b\n---\n{platform}\n...\n# c\n")), alone);
}

#[test]
fn namespaces_of_applications_are_those_of_the_platform() {
    let application = |name: &str, namespace: &str| {
        let metadata = format!("{{ name: {name}, namespace: {namespace} }}");
        format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {metadata}\n")
    };
    let all = [application("a", "web"), application("b", "argocd"), application("c", "team")];
    let (name, applications) = (|| PlatformName::parse("p").unwrap(), directory(&all));
    let ignored = SyncWaves::Ignored;
    let read = tiphys_spec::platform_from_applications(name(), ignored, &applications).unwrap();
    let file = tiphys_spec::platform_file_from_applications(name(), ignored, &applications);
    let written = tiphys_spec::platform(&sources(&[file.unwrap()])).unwrap();
    for platform in [read, written] {
        let namespaces: Vec<&str> = platform.argocd.all_namespaces().collect();
        assert_eq!(namespaces, ["argocd", "team", "web"]);
    }
}
