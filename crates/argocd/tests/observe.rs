//! What the gate is told of an Application. The shapes are those that Argo CD writes; that the
//! real thing writes them is shown by the end-to-end tests.

use serde_json::{Value, json};
use tiphys_argocd::Application;
use tiphys_model::{Health, SyncStatus};
use tiphys_run::{ConditionKind, Initiator, Observation, OperationPhase, Stamp};

const ID: &str = "0123456789ab/vault/3/1";

fn application() -> Value {
    json!({
        "metadata": { "name": "vault", "namespace": "argocd", "resourceVersion": "4711" },
        "spec": {
            "project": "platform",
            "source": { "repoURL": "https://git.example/p.git", "path": "apps/vault", "targetRevision": "abc" },
            "destination": { "server": "https://kubernetes.default.svc", "namespace": "vault" },
        },
        "status": {
            "reconciledAt": "2026-11-15T10:00:02Z",
            "health": { "status": "Healthy" },
            "sync": {
                "status": "Synced",
                "revision": "abc",
                "comparedTo": {
                    "source": { "repoURL": "https://git.example/p.git", "path": "apps/vault", "targetRevision": "abc" },
                    "destination": { "server": "https://kubernetes.default.svc", "namespace": "vault" },
                },
            },
            "operationState": {
                "phase": "Succeeded",
                "finishedAt": "2026-11-15T10:00:01Z",
                "message": "successfully synced (all tasks run)",
                "operation": {
                    "initiatedBy": { "username": "tiphys" },
                    "info": [{ "name": "tiphys.dev/operation", "value": ID }],
                },
                "syncResult": { "revision": "abc" },
            },
        },
    })
}

fn observe(value: Value) -> Observation {
    let application: Application = serde_json::from_value(value).expect("an Application");
    application.observe().expect("one that can be read")
}

/// Sets one field, given as a JSON pointer; what leads to it must be there.
fn with(pointer: &str, value: Value) -> Value {
    let mut application = application();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    application.pointer_mut(parent).expect("a parent")[field] = value;
    application
}

#[test]
fn an_application_is_seen_as_it_is() {
    let seen = observe(application());
    assert_eq!(seen.version, 4711);
    assert_eq!((seen.sync, seen.health), (SyncStatus::Synced, Health::Healthy));
    assert_eq!(seen.reconciled_at, Some(Stamp(1_794_736_802)));
    assert_eq!(seen.revisions.to_string(), "abc");
    assert!(seen.compared_to_spec && seen.operation.is_none());
    let last = seen.last.unwrap();
    assert_eq!(
        (last.phase, last.finished_at),
        (OperationPhase::Succeeded, Some(Stamp(1_794_736_801)))
    );
    assert_eq!(last.operation.id.unwrap().to_string(), ID);
    assert_eq!(last.revisions.to_string(), "abc");
}

#[test]
fn sources_of_every_kind_are_compared_alike() {
    let digest = "sha256:0123";
    for (source, revision, pinned) in [
        (
            json!({ "repoURL": "registry.example/charts", "chart": "web", "targetRevision": "1.2.3" }),
            "1.2.3",
            true,
        ),
        (
            json!({ "repoURL": "oci://registry.example/web", "path": ".", "targetRevision": digest }),
            digest,
            true,
        ),
        (
            json!({ "repoURL": "oci://registry.example/web", "path": ".", "targetRevision": "1.2" }),
            digest,
            false,
        ),
        (
            json!({ "repoURL": "https://git.example/p.git", "path": "a", "targetRevision": "abc", "plugin": { "name": "cue" } }),
            "abc",
            true,
        ),
        (
            json!({ "repoURL": "https://git.example/p.git", "path": "a", "targetRevision": "abc", "directory": { "recurse": true } }),
            "abc",
            true,
        ),
    ] {
        let mut application = with("/spec/source", source.clone());
        application["status"]["sync"]["comparedTo"]["source"] = source.clone();
        application["status"]["sync"]["revision"] = revision.into();
        let seen = observe(application);
        assert_eq!((seen.compared_to_spec, seen.pinned), (true, pinned), "{source}");
    }
}

#[test]
fn only_a_source_that_names_its_revision_is_pinned() {
    let pinned = |target: Value, revision: &str| {
        let mut application = with("/status/sync/revision", revision.into());
        application["spec"]["source"]["targetRevision"] = target;
        observe(application).pinned
    };
    for (target, revision) in [("abc", "abc"), ("1.2.3", "1.2.3")] {
        assert!(pinned(target.into(), revision), "{target}");
    }
    for (target, revision) in [("main", "abc"), ("v1.0.0", "abc"), ("1.x", "1.2.3"), ("HEAD", "a")]
    {
        assert!(!pinned(target.into(), revision), "{target}");
    }
    assert!(!pinned(Value::Null, "abc"), "the default branch");

    let several = |targets: [&str; 2]| {
        let sources = targets.map(|target| json!({ "repoURL": "x", "targetRevision": target }));
        let mut application = with("/status/sync/revisions", json!(["1.2.3", "abc"]));
        application["spec"]["sources"] = sources.to_vec().into();
        observe(application).pinned
    };
    assert!(several(["1.2.3", "abc"]) && !several(["1.2.3", "main"]));
    let mut one = with("/status/sync/revisions", json!(["abc"]));
    one["spec"]["sources"] = json!([{ "repoURL": "x", "targetRevision": "abc" }]);
    assert!(observe(one).pinned, "a list of one");
}

#[test]
fn one_that_argo_cd_has_not_looked_at_yet_is_unknown() {
    let seen = observe(json!({
        "metadata": { "name": "vault", "resourceVersion": "1" },
        "spec": { "project": "platform" },
    }));
    assert_eq!((seen.sync, seen.health), (SyncStatus::Unknown, Health::Unknown));
    assert!(!seen.compared_to_spec, "it was compared to nothing");
    assert!(seen.last.is_none() && seen.reconciled_at.is_none() && seen.revisions.0.is_empty());
}

#[test]
fn a_comparison_with_another_spec_is_no_comparison() {
    for (pointer, value) in [
        ("/spec/source/targetRevision", json!("def")),
        ("/spec/source/path", json!("apps/other")),
        ("/spec/destination/namespace", json!("other")),
        ("/spec/ignoreDifferences", json!([{ "kind": "Secret" }])),
        ("/status/sync/comparedTo", Value::Null),
    ] {
        assert!(!observe(with(pointer, value)).compared_to_spec, "{pointer}");
    }
}

#[test]
fn what_argo_cd_leaves_out_when_it_writes_makes_no_difference() {
    for (pointer, value) in [
        ("/spec/source/directory", json!({ "recurse": false })),
        ("/spec/source/helm", json!({ "parameters": [] })),
        ("/spec/destination/name", json!("")),
        ("/spec/ignoreDifferences", json!([])),
        ("/spec/sources", Value::Null),
    ] {
        assert!(observe(with(pointer, value)).compared_to_spec, "{pointer}");
    }
}

/// As Argo CD 3 leaves one whose manifests it has rendered into `environments/prod` and synced.
fn hydrated() -> Value {
    let hydrator = json!({
        "drySource": {
            "repoURL": "https://git.example/p.git", "path": "charts/vault", "targetRevision": "HEAD",
            "helm": { "valueFiles": ["prod.yaml"] },
        },
        "syncSource": { "targetBranch": "environments/prod", "path": "vault" },
    });
    let operation = json!({
        "drySHA": "0f5e1b1d9d1c5c5a4a8d1c7e2b3f4a5968778695",
        "hydratedSHA": "c2a1f0b7e6d5c4b3a29180716253443526170819",
        "sourceHydrator": hydrator,
    });
    let mut current = operation.clone();
    current["phase"] = json!("Hydrated");
    current["message"] = json!("");
    current["startedAt"] = json!("2026-11-15T09:59:50Z");
    current["finishedAt"] = json!("2026-11-15T09:59:56Z");
    let mut value = application();
    value["spec"].as_object_mut().expect("a spec").remove("source");
    value["spec"]["sourceHydrator"] = hydrator;
    let revision = &operation["hydratedSHA"];
    value["status"]["sync"]["revision"] = revision.clone();
    value["status"]["operationState"]["syncResult"]["revision"] = revision.clone();
    value["status"]["sync"]["comparedTo"]["source"] = json!({
        "repoURL": "https://git.example/p.git",
        "path": "vault",
        "targetRevision": "environments/prod",
    });
    value["status"]["sourceHydrator"] =
        json!({ "currentOperation": current, "lastSuccessfulOperation": operation });
    value
}

/// The same with one field set.
fn hydrated_with(pointer: &str, field: &str, value: Value) -> Value {
    let mut application = hydrated();
    application.pointer_mut(pointer).expect("it is there")[field] = value;
    application
}

#[test]
fn an_application_that_is_hydrated_is_compared_with_what_it_is_synced_from() {
    use tiphys_run::gate::{self, Start};
    let seen = observe(hydrated());
    assert!(seen.compared_to_spec);
    let id: tiphys_model::OperationId = ID.parse().unwrap();
    assert_eq!(gate::start(&seen, id.plan, &id.app, &[]), Start::AlreadyCurrent);
    let elsewhere = "https://git.example/rendered.git";
    let mut other = hydrated_with("/status/sync/comparedTo/source", "repoURL", json!(elsewhere));
    for hydrator in ["/spec", "/status/sourceHydrator/currentOperation"] {
        let at = format!("{hydrator}/sourceHydrator/syncSource");
        other.pointer_mut(&at).unwrap()["repoURL"] = json!(elsewhere);
    }
    assert!(observe(other).compared_to_spec, "what is rendered may have its own repository");
}

#[test]
fn one_that_is_not_hydrated_as_its_spec_says_is_not_compared_with_it() {
    let (spec, current) = ("/spec/sourceHydrator", "/status/sourceHydrator/currentOperation");
    for (pointer, field, value) in [
        (&*format!("{spec}/syncSource"), "targetBranch", json!("environments/test")),
        (&format!("{spec}/drySource"), "targetRevision", json!("v2")),
        ("/status/sync/comparedTo/source", "targetRevision", json!("environments/test")),
        ("/status/sync/comparedTo/source", "path", json!("charts/vault")),
        (current, "phase", json!("Hydrating")),
        (current, "phase", json!("Failed")),
        ("/status", "sourceHydrator", json!({})),
    ] {
        let seen = observe(hydrated_with(pointer, field, value.clone()));
        assert!(!seen.compared_to_spec, "{pointer} {field} {value}");
    }
    // Not even if all else is the same in both.
    let mut both = hydrated_with("/status/sync/comparedTo/source", "path", json!("old"));
    for hydrator in ["/spec", current] {
        let at = format!("{hydrator}/sourceHydrator/syncSource");
        both.pointer_mut(&at).unwrap()["path"] = json!("new");
    }
    assert!(!observe(both).compared_to_spec);
}

#[test]
fn sources_have_a_revision_each() {
    let mut value = with("/status/sync/revisions", json!(["abc", "1.2.3"]));
    value["status"]["operationState"]["syncResult"]["revisions"] = json!(["abc", "1.2.3"]);
    let seen = observe(value);
    assert_eq!(seen.revisions.0.len(), 2);
    assert_eq!(seen.last.unwrap().revisions, seen.revisions);
}

#[test]
fn a_failed_operation_names_the_resource_that_failed() {
    let message = |said: &str| {
        let result = |name: &str, status: &str, message: &str| json!({ "kind": "Job", "name": name, "status": status, "message": message });
        let resources = json!([
            result("a", "Synced", "created"),
            result("b", "SyncFailed", "no such kind"),
            result("c", "SyncFailed", "no room"),
        ]);
        let mut value = with("/status/operationState/message", json!(said));
        value["status"]["operationState"]["syncResult"]["resources"] = resources;
        observe(value).last.expect("an operation").message.to_string()
    };
    assert_eq!(message("tasks are not valid"), "tasks are not valid: Job/b: no such kind");
    assert_eq!(message("failed, reason: no such kind"), "failed, reason: no such kind");
}

#[test]
fn an_operation_is_ours_only_with_an_id_of_ours() {
    let id = |operation: Value| observe(with("/operation", operation)).operation.unwrap();
    let ours = id(json!({ "info": [{ "name": "tiphys.dev/operation", "value": ID }] }));
    assert_eq!(ours.id.unwrap().to_string(), ID);
    let garbled = id(json!({ "info": [{ "name": "tiphys.dev/operation", "value": "x" }] }));
    assert_eq!(garbled.id, None);
    let automated = id(json!({ "initiatedBy": { "automated": true } }));
    assert_eq!((automated.id, &automated.by), (None, &Initiator::Automated));
    assert_eq!(automated.by.to_string(), "Argo CD's automated sync");
    let alice = id(json!({ "initiatedBy": { "username": "alice" } }));
    assert_eq!((alice.id, &alice.by), (None, &Initiator::Named("alice".into())));
    assert_eq!(alice.by.to_string(), "alice");
    assert_eq!(id(json!({})).by.to_string(), "an unknown user");
    let ended = json!({
        "phase": "Succeeded", "operation": { "initiatedBy": { "automated": true } },
    });
    let last = observe(with("/status/operationState", ended)).last.unwrap();
    assert_eq!(last.operation.by, Initiator::Automated);
}

#[test]
fn conditions_drift_deletion_and_refreshes_are_seen() {
    let mut value = with(
        "/status/conditions",
        json!([
            { "type": "ComparisonError", "message": "no such path" },
            { "type": "OrphanedResourceWarning", "message": "…" },
        ]),
    );
    value["status"]["resources"] = json!([
        { "kind": "Deployment", "name": "vault", "status": "OutOfSync" },
        { "kind": "Service", "name": "vault", "status": "Synced" },
    ]);
    value["metadata"]["deletionTimestamp"] = json!("2026-11-15T10:00:05Z");
    value["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    let seen = observe(value);
    let kinds: Vec<_> = seen.conditions.iter().map(|condition| condition.kind).collect();
    assert_eq!(kinds, [ConditionKind::Comparison]);
    let drifted: Vec<_> = seen.drifted.iter().map(|drifted| &*drifted.resource).collect();
    assert_eq!(drifted, ["Deployment/vault"]);
    assert_eq!(seen.deleting.unwrap().finalizers.len(), 1);
}

#[test]
fn what_cannot_be_read_is_said_and_not_guessed() {
    for (pointer, value) in [
        ("/metadata/resourceVersion", json!("new")),
        ("/status/reconciledAt", json!("yesterday")),
        ("/status/operationState/phase", json!("Dancing")),
    ] {
        let application: Application =
            serde_json::from_value(with(pointer, value.clone())).unwrap();
        let said = application.observe().unwrap_err().to_string();
        assert!(said.contains(value.as_str().unwrap()) && said.contains("vault"), "{said}");
    }
}
