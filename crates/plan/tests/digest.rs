//! The digest: what it covers, what it does not, and how anybody can check it.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tiphys_model::criterion::{HttpCriterion, ResourceCriterion, ServiceCriterion};
use tiphys_model::platform::{AppType, Dependency, Group, Hold};
use tiphys_model::{
    AppIx, AppName, Criterion, GroupName, Platform, PlatformName, Scope, StackName,
};
use tiphys_plan::{PlanDifference, PlanDocument};

use crate::common::{graph, platforms, scoped_platforms};

fn digest(platform: &Platform) -> String {
    tiphys_plan::plan(platform, &Scope::Platform).unwrap().digest.as_str().to_owned()
}

/// Changes one thing of a platform, or of one of its apps.
type Change = fn(&mut Platform, usize);

/// Changes the edges of one app.
type EdgeChange = fn(&mut Vec<Dependency>);

/// One for each thing that a plan says. Every one takes effect on every platform.
const COVERED: [(&str, Change); 23] = [
    ("platform name", |p, _| p.name = PlatformName::parse("other").unwrap()),
    ("hold", |p, _| {
        p.policies.hold = match p.policies.hold {
            Hold::Always => Hold::DuringRun,
            Hold::DuringRun => Hold::Always,
        };
    }),
    ("concurrency", |p, _| p.policies.concurrency = more(p.policies.concurrency)),
    ("run timeout", |p, _| p.policies.timeout += SECOND),
    ("a group more", |p, _| {
        let name = GroupName::parse("group-x").unwrap();
        p.policies.groups.push(Group { name, concurrency: NonZeroU32::MIN });
    }),
    ("an app more", |p, at| {
        let mut app = p.apps[at].clone();
        app.name = AppName::parse("app-x").unwrap();
        p.apps.push(app);
    }),
    ("app name", |p, _| {
        let last = p.apps.last_mut().unwrap();
        last.name = AppName::parse(&format!("{}-x", last.name)).unwrap();
    }),
    ("stack", |p, at| p.apps[at].stack = StackName::parse("stack-x").unwrap()),
    ("type", |p, at| {
        let app_type = &mut p.apps[at].app_type;
        *app_type = match app_type {
            AppType::Vault => AppType::Simple,
            _ => AppType::Vault,
        };
    }),
    ("group membership", |p, at| {
        let name = GroupName::parse("group-x").unwrap();
        let full = NonZeroU32::new(1000).unwrap();
        p.policies.groups.push(Group { name, concurrency: full });
        p.apps[at].group = Some(p.policies.groups.len() - 1);
    }),
    ("typical", |p, at| p.apps[at].typical += SECOND),
    ("sync timeout", |p, at| p.apps[at].timeouts.sync += SECOND),
    ("health timeout", |p, at| p.apps[at].timeouts.health += SECOND),
    ("retry limit", |p, at| p.apps[at].retry.limit += 1),
    ("back-off duration", |p, at| p.apps[at].retry.backoff.duration += SECOND),
    ("back-off factor", |p, at| p.apps[at].retry.backoff.factor += 1),
    ("back-off maximum", |p, at| p.apps[at].retry.backoff.max += SECOND),
    ("tolerated drift", |p, at| p.apps[at].tolerate_drift.push("Zz/zzzz".to_owned())),
    ("resource criterion", |p, at| {
        p.apps[at].health.push(Criterion::Resource(ResourceCriterion {
            api_version: "v1".to_owned(),
            expression: "true".to_owned(),
            kind: "Pod".to_owned(),
            name: "a".to_owned(),
            namespace: None,
        }));
    }),
    ("tcp criterion", |p, at| {
        let service = "a".to_owned();
        let service = ServiceCriterion { namespace: None, port: 1, service };
        p.apps[at].health.push(Criterion::Tcp(service));
    }),
    ("postgres criterion", |p, at| {
        let service = "a".to_owned();
        let service = ServiceCriterion { namespace: None, port: 1, service };
        p.apps[at].health.push(Criterion::Postgres(service));
    }),
    ("redis criterion", |p, at| {
        let service = "a".to_owned();
        let service = ServiceCriterion { namespace: None, port: 1, service };
        p.apps[at].health.push(Criterion::Redis(service));
    }),
    ("http criterion", |p, at| {
        p.apps[at].health.push(Criterion::Http(HttpCriterion {
            expect: 200,
            namespace: None,
            path: "/".to_owned(),
            port: 1,
            service: "a".to_owned(),
            tls: true,
        }));
    }),
];

/// Each takes effect on a platform that has an edge from the chosen app.
const COVERED_EDGES: [(&str, EdgeChange); 2] = [
    ("an edge less", |dependencies| {
        dependencies.pop();
    }),
    ("optional", |dependencies| dependencies[0].optional ^= true),
];

const SECOND: Duration = Duration::from_secs(1);

/// Whether the difference of two platforms says what has changed, both ways.
fn is_told(old: &Platform, new: &Platform) -> bool {
    let plan = |platform| tiphys_plan::plan(platform, &Scope::Platform).unwrap();
    let (old, new) = (plan(old), plan(new));
    let tells = |difference: &PlanDifference| {
        let PlanDifference { added, removed, changed, settings, .. } = difference;
        !(added.is_empty() && removed.is_empty() && changed.is_empty() && settings.is_empty())
    };
    assert!(!tells(&PlanDifference::new(&old, &old)));
    tells(&PlanDifference::new(&old, &new)) && tells(&PlanDifference::new(&new, &old))
}

fn more(number: NonZeroU32) -> NonZeroU32 {
    number.checked_add(1).unwrap()
}

/// JSON without white space and with sorted keys, whatever `serde_json` does with maps.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

proptest! {
    #[test]
    fn equal_platforms_have_equal_plans((platform, scope) in scoped_platforms()) {
        let plan = tiphys_plan::plan(&platform, &scope).unwrap();
        prop_assert_eq!(tiphys_plan::plan(&platform.clone(), &scope).unwrap(), plan);
    }

    #[test]
    fn every_change_of_graph_or_policies_changes_the_digest(
        platform in platforms(),
        index in any::<Index>(),
    ) {
        let mut digests = BTreeMap::from([(digest(&platform), "unchanged")]);
        for (what, change) in COVERED {
            let mut changed = platform.clone();
            change(&mut changed, index.index(platform.apps.len()));
            changed.graph = graph(&changed.apps);
            let same = digests.insert(digest(&changed), what);
            prop_assert_eq!(same, None, "{} has the same digest", what);
            prop_assert!(is_told(&platform, &changed), "{}", what);
        }
    }

    #[test]
    fn every_change_of_an_edge_changes_the_digest(
        (platform, index) in (platforms(), any::<Index>())
            .prop_filter("an edge", |(platform, _)| platform.apps.iter().any(has_edges)),
    ) {
        let edged: Vec<usize> =
            (0..platform.apps.len()).filter(|at| has_edges(&platform.apps[*at])).collect();
        let at = *index.get(&edged);
        let before = digest(&platform);
        for (what, change) in COVERED_EDGES {
            let mut changed = platform.clone();
            change(&mut changed.apps[at].dependencies);
            changed.graph = graph(&changed.apps);
            prop_assert_ne!(digest(&changed), before.clone(), "{}", what);
            prop_assert!(is_told(&platform, &changed), "{}", what);
        }
        // The same number of edges, one of them to another app.
        let mut moved = platform.clone();
        moved.apps.push(moved.apps[at].clone());
        moved.apps.last_mut().unwrap().name = AppName::parse("app-x").unwrap();
        moved.apps.last_mut().unwrap().dependencies.clear();
        let twin = AppIx::new(moved.apps.len() - 1);
        moved.graph = graph(&moved.apps);
        let before = digest(&moved);
        moved.apps[at].dependencies.pop();
        moved.apps[at].dependencies.push(Dependency { app: twin, optional: false });
        moved.graph = graph(&moved.apps);
        prop_assert_ne!(digest(&moved), before);
    }

    #[test]
    fn the_scope_changes_the_digest(platform in platforms(), index in any::<Index>()) {
        let scope = Scope::app(&index.get(&platform.apps).name);
        let scoped = tiphys_plan::plan(&platform, &scope).unwrap();
        prop_assert_ne!(scoped.digest.as_str(), digest(&platform));
    }

    #[test]
    fn where_the_platform_lives_and_how_it_is_torn_down_is_no_part_of_the_digest(
        platform in platforms(),
        other in platforms(),
    ) {
        let Platform { environment, source, argocd, teardown, .. } = other;
        let moved = Platform { environment, source, argocd, teardown, ..platform.clone() };
        prop_assert_eq!(digest(&moved), digest(&platform));
    }

    #[test]
    fn the_document_is_canonical_and_the_digest_is_its_hash((platform, scope) in scoped_platforms()) {
        let plan = tiphys_plan::plan(&platform, &scope).unwrap();
        let text = serde_json::to_string(&PlanDocument::new(&plan)).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&text, &canonical(&document));
        let fields = document.as_object_mut().unwrap();
        let removed = ["digest", "criticalPath", "estimateSeconds"].map(|key| fields.remove(key));
        prop_assert_eq!(removed[0].as_ref(), Some(&Value::from(plan.digest.as_str())));
        prop_assert_eq!(removed[2].as_ref(), Some(&Value::from(plan.estimate.as_secs())));
        let hash = Sha256::digest(canonical(&document));
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(plan.digest.as_str(), format!("sha256:{hex}"));
    }
}

fn has_edges(app: &tiphys_model::App) -> bool {
    !app.dependencies.is_empty()
}
