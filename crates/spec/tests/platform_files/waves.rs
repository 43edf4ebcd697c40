//! Sync waves as dependencies, and the platform file that they become.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tiphys_model::platform::AppType;
use tiphys_model::{AppIx, AppName, Graph, Platform, PlatformName, Scope};
use tiphys_spec::{Diagnostics, SyncWaves};

use crate::schema_agreement::{independently, schema};
use crate::yaml::{Yaml, sources};

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(schema);

/// The annotations of an Application.
#[derive(Debug, Clone)]
struct Manifest {
    name: String,
    stack: Option<String>,
    app_type: Option<AppType>,
    wave: Option<i64>,
    /// Positions of other manifests, and whether the dependency is optional.
    depends_on: BTreeMap<usize, bool>,
    /// An optional dependency on an app that does not exist.
    absent: bool,
}

impl Manifest {
    fn wave(&self) -> i64 {
        self.wave.unwrap_or(0)
    }

    fn text(&self, all: &[Manifest]) -> String {
        let mark = |optional: bool| if optional { "?" } else { "" };
        let edges =
            self.depends_on.iter().map(|(at, optional)| (all[*at].name.as_str(), *optional));
        let edges = edges.chain(self.absent.then_some(("absent-from-here", true)));
        let edges: Vec<String> =
            edges.map(|(name, optional)| format!("{name}{}", mark(optional))).collect();
        let annotations = [
            ("tiphys.dev/stack", self.stack.clone()),
            ("tiphys.dev/type", self.app_type.map(|app_type| app_type.as_str().to_owned())),
            ("argocd.argoproj.io/sync-wave", self.wave.map(|wave| wave.to_string())),
            ("tiphys.dev/depends-on", (!edges.is_empty()).then(|| edges.join(","))),
        ];
        let given = annotations.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let given = given.map(|(key, value)| (key.to_owned(), Yaml::quoted(&value)));
        let metadata = Yaml::map([
            ("name", Yaml::quoted(&self.name)),
            ("annotations", Yaml::Map(given.collect())),
        ]);
        Yaml::map([
            ("apiVersion", Yaml::plain("argoproj.io/v1alpha1")),
            ("kind", Yaml::plain("Application")),
            ("metadata", metadata),
        ])
        .text()
    }
}

/// Names, among them those that YAML takes for something else.
fn names() -> impl Strategy<Value = BTreeSet<String>> {
    let odd = ["true", "null", "no", "on", "y", "12", "1e3", "0x1f", "0o7", "1.5", "2026-11-16"];
    let name =
        prop_oneof![select(odd.map(str::to_owned).to_vec()), "[a-z0-9]([-.a-z0-9]{0,6}[a-z0-9])?"];
    btree_set(name.prop_filter("no name", |name| AppName::parse(name).is_ok()), 1..12)
}

/// Applications whose written dependencies lead any way that makes no cycle among themselves.
fn manifests() -> impl Strategy<Value = Vec<Manifest>> {
    let stacks = select(vec!["storage".to_owned(), "7".to_owned(), "null".to_owned()]);
    let wave = prop_oneof![-2..3i64, select(vec![i64::MIN, i64::MAX])];
    let one = (option::of(stacks), option::of(select(AppType::ALL.to_vec())), option::of(wave));
    names().prop_flat_map(move |names| {
        let count = names.len();
        let edge = option::weighted(0.2, any::<bool>());
        let each = vec((one.clone(), vec(edge, count), any::<bool>()), count);
        let names = Just(names.into_iter().collect::<Vec<_>>()).prop_shuffle();
        (names, each).prop_map(|(names, each)| {
            let manifest = |(at, (name, ((stack, app_type, wave), edges, absent)))| {
                let edges: Vec<Option<bool>> = edges;
                let edges = edges.into_iter().enumerate().take(at);
                let depends_on = edges.filter_map(|(to, edge)| Some((to, edge?))).collect();
                Manifest { name, stack, app_type, wave, depends_on, absent }
            };
            names.into_iter().zip(each).enumerate().map(manifest).collect()
        })
    })
}

/// As [`manifests`], without written dependencies on a later wave.
fn agreeing() -> impl Strategy<Value = Vec<Manifest>> {
    manifests().prop_map(|mut all| {
        let waves: Vec<i64> = all.iter().map(Manifest::wave).collect();
        for (manifest, wave) in all.iter_mut().zip(&waves) {
            manifest.depends_on.retain(|to, _| waves[*to] <= *wave);
        }
        all
    })
}

fn texts(all: &[Manifest]) -> Vec<String> {
    let texts: Vec<String> = all.iter().map(|manifest| manifest.text(all)).collect();
    texts.chunks(3).map(|file| file.join("---\n")).collect()
}

fn name() -> PlatformName {
    PlatformName::parse("p").unwrap()
}

fn read(all: &[Manifest], waves: SyncWaves) -> Result<Platform, Diagnostics> {
    tiphys_spec::platform_from_applications(name(), waves, &sources(&texts(all)))
}

/// Positions of the apps by wave.
fn by_wave(all: &[Manifest]) -> BTreeMap<i64, Vec<usize>> {
    let mut waves: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (at, manifest) in all.iter().enumerate() {
        waves.entry(manifest.wave()).or_default().push(at);
    }
    waves
}

/// The edges of a platform, dependant first, in positions of the manifests.
fn edges(platform: &Platform, all: &[Manifest]) -> Vec<(usize, usize)> {
    let position = |app: AppIx| {
        let name = platform.apps[app.position()].name.as_str();
        all.iter().position(|manifest| manifest.name == name).unwrap()
    };
    let apps = platform.graph.apps();
    let edges = apps.flat_map(|app| {
        let dependencies = platform.graph.dependencies(app).iter();
        dependencies.map(move |dependency| (app, *dependency))
    });
    edges.map(|(app, dependency)| (position(app), position(dependency))).collect()
}

/// The edges that are written, dependant first.
fn written(all: &[Manifest]) -> BTreeSet<(usize, usize)> {
    let all = all.iter().enumerate();
    all.flat_map(|(at, one)| one.depends_on.keys().map(move |to| (at, *to))).collect()
}

fn reachable(graph: &Graph, from: AppIx) -> BTreeSet<AppIx> {
    let mut found = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(app) = pending.pop() {
        pending.extend(graph.dependencies(app).iter().filter(|app| found.insert(**app)));
    }
    found
}

proptest! {
    #[test]
    fn an_app_comes_after_every_app_of_every_earlier_wave(all in agreeing()) {
        let platform = read(&all, SyncWaves::Edges).unwrap();
        let waves: BTreeMap<&str, i64> =
            all.iter().map(|manifest| (manifest.name.as_str(), manifest.wave())).collect();
        let wave = |app: AppIx| waves[platform.apps[app.position()].name.as_str()];
        for app in platform.graph.apps() {
            let before = reachable(&platform.graph, app);
            let earlier = platform.graph.apps().filter(|other| wave(*other) < wave(app));
            for other in earlier {
                prop_assert!(before.contains(&other), "{other:?} is not before {app:?}");
            }
        }
    }

    #[test]
    fn neighbouring_waves_are_joined_and_nothing_else_is(all in agreeing()) {
        let waves = by_wave(&all);
        let pairs = waves.values().zip(waves.values().skip(1));
        let joined: BTreeSet<(usize, usize)> = pairs
            .clone()
            .flat_map(|(earlier, later)| {
                later.iter().flat_map(|app| earlier.iter().map(move |other| (*app, *other)))
            })
            .collect();
        prop_assert_eq!(joined.len(), pairs.map(|(a, b)| a.len() * b.len()).sum::<usize>());
        let found = edges(&read(&all, SyncWaves::Edges).unwrap(), &all);
        let distinct: BTreeSet<(usize, usize)> = found.iter().copied().collect();
        prop_assert_eq!(found.len(), distinct.len());
        prop_assert_eq!(distinct, &joined | &written(&all));
    }

    #[test]
    fn waves_change_nothing_but_edges(all in agreeing()) {
        let without = read(&all, SyncWaves::Ignored).unwrap();
        let found: BTreeSet<(usize, usize)> = edges(&without, &all).into_iter().collect();
        prop_assert_eq!(found, written(&all));
        let mut with = read(&all, SyncWaves::Edges).unwrap();
        for (app, plain) in with.apps.iter_mut().zip(&without.apps) {
            // What is written stays as it is written, optional or not.
            app.dependencies.retain(|dependency| {
                plain.dependencies.iter().any(|given| given.app == dependency.app)
            });
        }
        prop_assert_eq!(with.apps, without.apps);
    }

    #[test]
    fn a_dependency_on_a_later_wave_is_a_cycle(all in manifests()) {
        let backwards = written(&all).iter().any(|(app, to)| all[*to].wave() > all[*app].wave());
        match read(&all, SyncWaves::Edges) {
            Ok(_) => prop_assert!(!backwards),
            Err(problems) => {
                prop_assert!(backwards);
                for problem in problems.into_sorted() {
                    prop_assert!(problem.title.contains("depend on each other"), "{}", problem.title);
                }
            }
        }
    }

    #[test]
    fn the_platform_file_says_what_the_applications_say(all in agreeing(), order in any::<u64>()) {
        for waves in [SyncWaves::Ignored, SyncWaves::Edges] {
            let platform = read(&all, waves).unwrap();
            let file = |texts: &[String]| {
                tiphys_spec::platform_file_from_applications(name(), waves, &sources(texts)).unwrap()
            };
            let text = file(&texts(&all));
            let again = tiphys_spec::platform(&sources(&[&text]));
            prop_assert_eq!(again.as_ref(), Ok(&platform), "{}", text);
            let digest = |platform: &Platform| tiphys_plan::plan(platform, &Scope::Platform).unwrap().digest;
            prop_assert_eq!(digest(&again.unwrap()), digest(&platform));
            // Other tools read it too, and the order of the manifests does not matter.
            prop_assert!(independently(&text).is_some_and(|value| SCHEMA.is_valid(&value)));
            let mut manifests: Vec<String> = all.iter().map(|one| one.text(&all)).collect();
            let turn = usize::try_from(order % manifests.len() as u64).unwrap();
            manifests.rotate_left(turn);
            prop_assert_eq!(file(&manifests), text);
        }
    }
}

#[test]
fn a_dependency_on_an_absent_app_stays_in_the_platform_file() {
    let manifest = Manifest {
        name: "a".to_owned(),
        stack: None,
        app_type: Some(AppType::Vault),
        wave: None,
        depends_on: BTreeMap::new(),
        absent: true,
    };
    let texts = [manifest.text(&[])];
    let waves = SyncWaves::Ignored;
    let file = tiphys_spec::platform_file_from_applications(name(), waves, &sources(&texts));
    let expected = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata:
  name: p
spec:
  stacks:
    - name: default
      apps:
        - name: a
          type: vault
          dependsOn:
            - { app: absent-from-here, optional: true }
";
    assert_eq!(file.unwrap(), expected);
}
