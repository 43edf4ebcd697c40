//! The parser and the JSON Schema draw the same line: a document is refused by both or by none.
//!
//! Every document that differs in one place from a rich valid one is read by the parser, and,
//! through another YAML reader, held against the schema. The parser also refuses what a schema
//! cannot see: unknown names, duplicates, cycles, an empty platform, timeouts of zero, durations
//! beyond a week, a first wait beyond the longest, whole numbers written as floats, expressions
//! that are none. Changes that would do only that are not made: other apps depend on nothing that
//! changes, no item of a list of names is repeated, where a name refers to something, it is only
//! replaced by what is no name, the longest wait is longer than any duration that comes to a
//! place, and no text takes the place of an expression.

use serde_json::Value;
use tiphys_spec::PLATFORM_SCHEMA;

use crate::yaml::{Yaml, sources};

/// The first stack and the first group stay as they are, because the rest refers to them.
const WHOLE: &str = r#"
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: rich }
spec:
  environment: { name: production, domain: example.org }
  source: { repoURL: "https://git.example/platform.git", targetRevision: main, path: root }
  argocd:
    namespace: argocd
    project: platform
    rootProject: platform-root
    access: api
    server: https://argocd.example.org:8443
    ca: "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    tokenSecret: argocd-token
    rootPath: /argocd
    insecure: false
    sources: ["https://git.example/*"]
    destinations:
      - { server: https://kubernetes.default.svc, namespace: "team-*" }
      - { name: edge, namespace: edge }
    clusterKinds: [Namespace, rbac.authorization.k8s.io/ClusterRole]
  bootstrap:
    installer: native
    highAvailability: true
    timeout: 10m
    argocd:
      version: 3.2.6
      manifests:
        path: install/argocd.yaml
        sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
      patches: patches.yaml
    workflows:
      version: 3.7.14
      namespace: argo
      manifests:
        url: https://example.org/install.yaml
        sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    events:
      version: 1.9.10
      manifests:
        chart: { repository: https://example.org, name: argo-events, version: 2.4.0, values: v.yaml }
        sha256: cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
    tiphys:
      version: 0.1.0
      namespace: tiphys-system
      manifests:
        oci: registry.example/tiphys-chart:0.1.0
        sha256: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
    images: [{ from: quay.io, to: mirror.example }]
    endpoints: { registries: [quay.io], charts: [https://example.org] }
  hold: during-run
  concurrency: 16
  groups: [{ name: heavy, concurrency: 2 }, { name: unused, concurrency: 10000 }]
  timeout: 3h
  teardown: { disposable: [Secret, cert-manager.io/Certificate] }
  deploy: { mode: manual, allow: [{ schedule: "0 22 * * mon-fri", duration: 2h }] }
  triggers:
    - name: nightly
      schedule: { cron: "0 3 * * *", action: validate, scope: "stack:data,app:web-*" }
    - name: certificates
      resource:
        { apiVersion: cert-manager.io/v1, kind: Certificate, label: team=a, scope: "app:web" }
  stacks:
    - { name: fixed, apps: [{ name: fixed-1 }, { name: fixed-2 }, { name: fixed-3 }] }
    - name: storage
      apps:
        - name: ceph-cluster
          type: ceph-cluster
          group: heavy
          typical: 18m
          dependsOn: [fixed-1, { app: fixed-2 }, { app: fixed-3, optional: true }]
          timeouts: { sync: 30m, health: 1h30m20s }
          retry: { limit: 2, backoff: { duration: 10s, factor: 2, max: 2h } }
          tolerateDrift: [ConfigMap/settings]
          health:
            - resource:
                apiVersion: ceph.rook.io/v1
                kind: CephCluster
                name: rook-ceph
                namespace: rook
                expression: "obj.status.phase == 'Ready'"
            - tcp: { service: rook-ceph-mon-a, port: 6789, namespace: rook }
            - http:
                { service: vault, port: 8200, path: /, expect: 200, tls: true, namespace: vault }
            - postgres: { service: db, port: 5432, namespace: db }
            - redis: { service: cache, port: 6379, namespace: cache }
"#;

/// A file of a directory, next to [`HEAD`].
const PART: &str = "
stacks:
  - { name: fixed, apps: [{ name: fixed-1 }] }
  - name: storage
    apps: [{ name: ceph-cluster, dependsOn: [fixed-1], typical: 18m }]
";

/// What the rest of a document has to be like, a schema does not see: only parts are changed.
const PUSHED: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: pushed }
spec:
  source: { repoURL: 'https://git.example/team/platform.git', path: root }
  deploy:
    mode: automatic
    commitStatus:
      { provider: github, api: 'https://git.example/api', link: 'https://page.example' }
  triggers: [{ name: push, push: { provider: github } }]
  stacks: [{ name: s, apps: [{ name: a }] }]
";

const HEAD: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: rich }
spec: { hold: always }
";

/// Values of every kind, none of them the name of an app or a group.
#[rustfmt::skip]
const NO_NAMES: [&str; 56] = [
    "~", "", "\"\"", "true", "false", "0", "1", "-1", "99", "100", "101", "200", "599", "600",
    "10000", "10001",
    "65535", "65536", "0x10", "0o17", "99999999999999999999", "-99999999999999999999", "1.5",
    ".inf", ".nan", "-5m", "5 m", "5M", "1m 1m", "Kind/name", "Kind/a/name", "/name", "Kind/", "/",
    "Upper", "a..b", "-a", "a-", "a_b", "a/b", "\"a\\nb\"", "\"5m\\n\"", "ä", "tiphys.dev/v1",
    "tiphys.dev/v1alpha1", "Platform", "[]", "{}", "[1]", "[~]", "{ a: b }", "{ name: 1 }",
    "{ app: 1 }", "{ tcp: {} }", "[{}]",
    "{ tcp: { service: s, port: 1 }, http: { service: s, port: 1, path: / } }",
];

/// Values that could also be names.
#[rustfmt::skip]
const NAMES: [&str; 19] = [
    "word", "yes", "kubernetes", "http://a", "https://a/b", "always", "during-run", "vault", "simple", "5m", "0h90m", "1h30m5s", "30m1h",
    "1.5h", "a.b", "1e", "0x", "\"1\"", "\"true\"",
];

/// The longest names of each kind, and one character more.
const LENGTHS: [usize; 6] = [56, 57, 63, 64, 253, 254];

/// Whether only what is no name may come here: something else goes by this name.
fn refers(place: &str) -> bool {
    let last = place.rsplit('/').next().unwrap_or_default();
    place.contains("/dependsOn/") && last != "optional"
        || last == "group"
        || place.ends_with("/groups/0/name")
}

/// Whether items of this list have names, so that none may stand twice.
fn names_things(place: &str) -> bool {
    ["/stacks", "/apps", "/groups", "/dependsOn"].iter().any(|end| place.ends_with(end))
}

/// Whether something else in the document needs what stands here.
fn needed(place: &str) -> bool {
    ["/groups", "/groups/0", "/stacks/0"].iter().any(|end| place.ends_with(end))
}

fn empties_the_platform(place: &str, value: &str) -> bool {
    value == "[]" && (place.ends_with("/stacks") || place.ends_with("/groups"))
}

/// Every value that may come to a place.
fn values(place: &str) -> Vec<Yaml> {
    let fixed = NO_NAMES.iter().filter(|value| !empties_the_platform(place, value));
    let mut values: Vec<Yaml> = fixed.map(Yaml::plain).collect();
    if place.ends_with("/expression") {
        let text = |value: &Yaml| matches!(independently(&value.text()), Some(Value::String(_)));
        values.retain(|value| !text(value));
    } else if !refers(place) {
        values.extend(NAMES.map(Yaml::plain));
        values.extend(LENGTHS.map(|length| Yaml::plain("x".repeat(length))));
    }
    values
}

/// Every tree that differs from `node` in one place, with what was done where.
fn variants(place: &str, node: &Yaml) -> Vec<(String, Yaml)> {
    let mut all = Vec::new();
    if place.ends_with("/stacks/0") || place.ends_with("/groups/0") {
        return all;
    }
    for value in values(place) {
        all.push((format!("{place} = {}", value.text().trim_end()), value));
    }
    all.push((format!("{place} in a list"), Yaml::List(vec![node.clone()])));
    all.push((format!("{place} in an object"), Yaml::map([("a", node.clone())])));
    match node {
        Yaml::Map(fields) => all.extend(map_variants(place, fields)),
        Yaml::List(items) => all.extend(list_variants(place, items)),
        Yaml::Plain(_) | Yaml::Quoted(_) | Yaml::Set(_) => {}
    }
    all
}

fn map_variants(place: &str, fields: &[(String, Yaml)]) -> Vec<(String, Yaml)> {
    let mut all = Vec::new();
    let mut push = |what: String, fields: Vec<(String, Yaml)>| all.push((what, Yaml::Map(fields)));
    for key in ["extra", "~", "1", "\"\""] {
        let extra = (key.to_owned(), Yaml::plain("1"));
        push(format!("{place} with the field {key}"), [fields, &[extra]].concat());
    }
    for (at, (key, value)) in fields.iter().enumerate() {
        let inner = format!("{place}/{key}");
        let with =
            |entries: &[(String, Yaml)]| [&fields[..at], entries, &fields[at + 1..]].concat();
        let entry = |key: String, value: &Yaml| (key, value.clone());
        if !needed(&inner) {
            push(format!("{inner} dropped"), with(&[]));
        }
        push(format!("{inner} renamed"), with(&[entry(format!("{key}s"), value)]));
        push(format!("{inner} in capitals"), with(&[entry(key.to_uppercase(), value)]));
        let twice = [entry(key.clone(), value), entry(key.clone(), value)];
        push(format!("{inner} twice"), with(&twice));
        for (what, variant) in variants(&inner, value) {
            push(what, with(&[(key.clone(), variant)]));
        }
    }
    all
}

fn list_variants(place: &str, items: &[Yaml]) -> Vec<(String, Yaml)> {
    let mut all = Vec::new();
    let mut push = |what: String, items: Vec<Yaml>| all.push((what, Yaml::List(items)));
    let end = format!("{place}/{}", items.len());
    for value in values(&end) {
        push(format!("{end} = {}", value.text().trim_end()), [items, &[value]].concat());
    }
    for (at, item) in items.iter().enumerate() {
        let inner = format!("{place}/{at}");
        let with = |new: &[Yaml]| [&items[..at], new, &items[at + 1..]].concat();
        if !needed(&inner) {
            push(format!("{inner} dropped"), with(&[]));
        }
        if !names_things(place) {
            push(format!("{inner} twice"), with(&[item.clone(), item.clone()]));
        }
        for (what, variant) in variants(&inner, item) {
            push(what, with(&[variant]));
        }
    }
    all
}

fn tree(value: &Value) -> Yaml {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Yaml::plain(value),
        Value::String(text) => Yaml::quoted(text),
        Value::Array(items) => Yaml::List(items.iter().map(tree).collect()),
        Value::Object(fields) => {
            Yaml::Map(fields.iter().map(|(key, value)| (key.clone(), tree(value))).collect())
        }
    }
}

/// The document as YAML 1.2 means it; `None` if it is none or has a field twice.
pub(crate) fn independently(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).ok()
}

pub(crate) fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(PLATFORM_SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Counts (accepted, refused) documents, after making sure that both sides say the same of all.
fn compare(text: &str, within: &str, files: impl Fn(String) -> Vec<String>) -> (usize, usize) {
    let schema = schema();
    let root = tree(&independently(text).unwrap());
    let mut counts = (0, 0);
    let mut disagreements = Vec::new();
    for (what, variant) in variants("", &root) {
        if !what.starts_with(within) {
            continue;
        }
        let text = variant.text();
        let by_schema = independently(&text).is_some_and(|value| schema.is_valid(&value));
        let by_parser = tiphys_spec::platform(&sources(&files(text)));
        match (by_schema, by_parser) {
            (true, Ok(_)) => counts.0 += 1,
            (false, Err(_)) => counts.1 += 1,
            (false, Ok(_)) => disagreements.push(format!("only the schema refuses: {what}")),
            (true, Err(problems)) => {
                let titles: Vec<String> =
                    problems.into_sorted().into_iter().map(|problem| problem.title).collect();
                disagreements.push(format!("only the parser refuses: {what}: {titles:?}"));
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
    counts
}

#[test]
fn whole_documents_are_refused_by_both_or_by_none() {
    let (accepted, refused) = compare(WHOLE, "", |text| vec![text]);
    // If hardly anything is accepted or refused, the comparison says nothing.
    assert!(accepted > 400 && refused > 4000, "{accepted} accepted, {refused} refused");
}

#[test]
fn automatic_deployments_are_refused_by_both_or_by_none() {
    for within in ["/spec/triggers/", "/spec/deploy/commitStatus/"] {
        let (accepted, refused) = compare(PUSHED, within, |text| vec![text]);
        assert!(accepted > 3 && refused > 200, "{within}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn parts_of_a_directory_are_refused_by_both_or_by_none() {
    let (accepted, refused) = compare(PART, "", |text| vec![HEAD.to_owned(), text]);
    assert!(accepted > 40 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Which fields stand at the top decides what a file is. A schema sees one file, so it takes a
/// part for right where a whole is needed, and is stricter than the parser with other parts.
#[test]
fn only_these_tops_are_accepted() {
    const TOP: [(&str, &str); 5] = [
        ("apiVersion", "tiphys.dev/v1alpha1"),
        ("kind", "Platform"),
        ("metadata", "{ name: rich }"),
        ("spec", "{ stacks: [{ name: s, apps: [{ name: a }] }] }"),
        ("stacks", "[{ name: t, apps: [{ name: b }] }]"),
    ];
    let whole = &["apiVersion", "kind", "metadata", "spec"][..];
    let nameless = &["apiVersion", "kind", "spec"][..];
    let bare = &["stacks"][..];
    let schema = schema();
    let (mut by_schema, mut alone, mut as_part) = (Vec::new(), Vec::new(), Vec::new());
    for chosen in 0..1 << TOP.len() {
        let fields = TOP.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        let fields: Vec<_> = fields.map(|(_, field)| *field).collect();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let text: String =
            fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let accepted = |files: &[&str]| tiphys_spec::platform(&sources(files)).is_ok();
        if independently(&text).is_some_and(|value| schema.is_valid(&value)) {
            by_schema.push(names.clone());
        }
        if accepted(&[&text]) {
            alone.push(names.clone());
        }
        if accepted(&[HEAD, &text, PART]) {
            as_part.push(names);
        }
    }
    assert_eq!(by_schema, [whole, bare]);
    assert_eq!(alone, [whole]);
    assert_eq!(as_part, [nameless, whole, bare]);
}
