use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::Method;
use tiphys_cluster::scripted::{self, Answer, Asked};
use tiphys_run::Revisions;

use super::*;
use crate::applications::tests::argocd;

fn written(revisions: &[&str]) -> Value {
    let before: Application = serde_json::from_value(json!({
        "metadata": { "name": "vault", "resourceVersion": "7" },
        "spec": { "syncPolicy": { "syncOptions": ["CreateNamespace=true"] } },
    }))
    .unwrap();
    let id = "0123456789ab/vault/1/1".parse().unwrap();
    let revisions = Revisions(revisions.iter().map(|revision| (*revision).into()).collect());
    let request = SyncRequest { operation: &id, revisions: &revisions, prune: true };
    operation(&before, request)
}

#[test]
fn an_operation_says_what_the_api_would_say() {
    let patch = written(&["abc"]);
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["operation"]["sync"]["revision"], "abc");
    assert_eq!(patch["operation"]["sync"]["prune"], true);
    assert_eq!(patch["operation"]["sync"]["syncOptions"], json!(["CreateNamespace=true"]));
    assert_eq!(patch["operation"]["info"][0]["value"], "0123456789ab/vault/1/1");
    assert!(patch["operation"]["initiatedBy"].get("automated").is_none(), "it is a manual one");
    assert!(patch["status"]["operationState"].is_null());
}

#[test]
fn several_sources_have_a_revision_each() {
    let sync = &written(&["abc", "1.2.3"])["operation"]["sync"];
    assert_eq!(sync["revisions"], json!(["abc", "1.2.3"]));
    assert!(sync.get("revision").is_none());
}

/// Sees each request first: it may answer it, or change what is there.
type Script = Box<dyn FnMut(&Asked, &mut Value) -> Option<Answer> + Send>;

/// A server with one Application that checks versions and uids, and what it was asked to change.
fn serve(mut metadata: Value, mut script: Script) -> (FieldsClient, Arc<Mutex<Vec<Value>>>) {
    let writes: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = writes.clone();
    let client = scripted::client(move |asked| {
        if asked.method != Method::GET {
            seen.lock().unwrap().push(asked.body.clone());
        }
        if let Some(answer) = script(asked, &mut metadata) {
            return answer;
        }
        let guard = match asked.method {
            Method::PATCH => &asked.body["metadata"]["resourceVersion"],
            Method::DELETE => &asked.body["preconditions"]["resourceVersion"],
            _ => return Answer::Object(object(&metadata)),
        };
        if *guard != metadata["resourceVersion"] {
            return Answer::refused(409, "the object has been modified");
        }
        if asked.method == Method::DELETE {
            assert_eq!(asked.body["preconditions"]["uid"], metadata["uid"]);
            seen.lock().unwrap().push(json!({ "deletedWith": metadata["finalizers"] }));
            return Answer::Object(json!({ "kind": "Status", "status": "Success" }));
        }
        metadata["finalizers"] = asked.body["metadata"]["finalizers"].clone();
        metadata["resourceVersion"] = "100".into();
        Answer::Object(object(&metadata))
    });
    (FieldsClient::new(Applications::of(&client, &argocd(&["team"]))), writes)
}

fn object(metadata: &Value) -> Value {
    json!({ "metadata": metadata, "spec": { "project": "p" } })
}

fn metadata(finalizers: &[&str]) -> Value {
    json!({ "name": "vault", "uid": "u", "resourceVersion": "7", "finalizers": finalizers })
}

const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";
const HOOK: &str = "post-delete-finalizer.argocd.argoproj.io";

#[tokio::test(start_paused = true)]
async fn others_finalizers_stay_when_an_application_is_deleted() {
    let (fields, writes) = serve(metadata(&[HOOK]), Box::new(|_, _| None));
    fields.delete(&AppAddress::own("vault", "p")).await.unwrap();
    let foreground = format!("{CASCADE}/foreground");
    let writes = writes.lock().unwrap();
    assert_eq!(writes[0]["metadata"]["finalizers"], json!([HOOK, foreground]));
    assert_eq!(writes[1]["preconditions"], json!({ "uid": "u", "resourceVersion": "100" }));
    assert_eq!(writes[2]["deletedWith"], json!([HOOK, foreground]));
}

#[tokio::test(start_paused = true)]
async fn others_finalizers_stay_when_what_was_applied_does() {
    let (fields, writes) = serve(metadata(&[CASCADE, HOOK]), Box::new(|_, _| None));
    fields.delete_orphaning(&AppAddress::own("vault", "p")).await.unwrap();
    let writes = writes.lock().unwrap();
    assert_eq!(writes.last().unwrap()["deletedWith"], json!([HOOK]));
}

/// Before the first write, or between it and the deletion.
#[tokio::test(start_paused = true)]
async fn a_finalizer_that_comes_in_between_is_kept() {
    for method in [Method::PATCH, Method::DELETE] {
        let mut came = false;
        let comes = move |asked: &Asked, metadata: &mut Value| {
            if asked.method == method && !std::mem::replace(&mut came, true) {
                let finalizers = metadata["finalizers"].as_array_mut().unwrap();
                finalizers.insert(0, HOOK.into());
                metadata["resourceVersion"] = "50".into();
            }
            None
        };
        let (fields, writes) = serve(metadata(&[]), Box::new(comes));
        fields.delete(&AppAddress::own("vault", "p")).await.unwrap();
        let foreground = format!("{CASCADE}/foreground");
        let writes = writes.lock().unwrap();
        assert_eq!(writes.last().unwrap()["deletedWith"], json!([HOOK, foreground]));
    }
}

/// Somebody sets again what would take along all that was to stay.
#[tokio::test(start_paused = true)]
async fn a_cascade_that_comes_in_between_is_removed_again() {
    let mut came = false;
    let comes = move |asked: &Asked, metadata: &mut Value| {
        if asked.method == Method::DELETE && !std::mem::replace(&mut came, true) {
            metadata["finalizers"] = json!([HOOK, CASCADE]);
            metadata["resourceVersion"] = "50".into();
        }
        None
    };
    let (fields, writes) = serve(metadata(&[CASCADE, HOOK]), Box::new(comes));
    fields.delete_orphaning(&AppAddress::own("vault", "p")).await.unwrap();
    let writes = writes.lock().unwrap();
    assert_eq!(writes.last().unwrap()["deletedWith"], json!([HOOK]));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_for_ever_is_busy_and_no_longer_asked_for() {
    let always = |asked: &Asked, _: &mut Value| {
        (asked.method == Method::DELETE).then(|| Answer::refused(409, "modified"))
    };
    let (fields, writes) = serve(metadata(&[CASCADE]), Box::new(always));
    let error = fields.delete(&AppAddress::own("vault", "p")).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Busy, .. }), "{error}");
    assert_eq!(writes.lock().unwrap().len(), DELETE_ATTEMPTS as usize);
}

#[tokio::test(start_paused = true)]
async fn another_one_of_the_same_name_is_left_alone() {
    let mut reads = 0;
    let replaced = move |asked: &Asked, _: &mut Value| match asked.method {
        Method::GET => {
            reads += 1;
            (reads == 2).then(|| Answer::Object(object(&json!({ "name": "vault", "uid": "v" }))))
        }
        _ => Some(Answer::refused(409, "modified")),
    };
    let (fields, writes) = serve(metadata(&[CASCADE]), Box::new(replaced));
    fields.delete(&AppAddress::own("vault", "p")).await.unwrap();
    assert_eq!(writes.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_added_to_what_is_being_deleted() {
    let mut going = metadata(&[HOOK]);
    going["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let (fields, writes) = serve(going.clone(), Box::new(|_, _| None));
    fields.delete(&AppAddress::own("vault", "p")).await.unwrap();
    assert_eq!(writes.lock().unwrap().last().unwrap()["deletedWith"], json!([HOOK]));
    // But what would cascade is removed.
    going["finalizers"] = json!([HOOK, CASCADE]);
    let (fields, writes) = serve(going, Box::new(|_, _| None));
    fields.delete_orphaning(&AppAddress::own("vault", "p")).await.unwrap();
    assert_eq!(writes.lock().unwrap().last().unwrap()["deletedWith"], json!([HOOK]));
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_the_server_may_pass() {
    let broken =
        |_: &Asked, _: &mut Value| Some(Answer::refused(500, "etcdserver: leader changed"));
    let (fields, _) = serve(metadata(&[]), Box::new(broken));
    let error = fields.delete(&AppAddress::own("vault", "p")).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Broken, .. }), "{error}");
}

/// A controller that ends a refresh of an app when `ends` says so: by its name, how it was asked for
/// and how long it has been. Returns the client, and what it was asked for.
fn refreshing(
    ends: impl Fn(&str, &str, Duration) -> bool + Send + 'static,
) -> (FieldsClient, Arc<Mutex<Vec<String>>>) {
    let asked_for: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = asked_for.clone();
    let mut standing = BTreeMap::<String, (String, Instant)>::new();
    let client = scripted::client(move |asked| {
        let path = asked.path.split('?').next().unwrap_or_default();
        let app = path.rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(how) = asked.body["metadata"]["annotations"][REFRESH].as_str() {
            requests.lock().unwrap().push(format!("{app} {how}"));
            let since = standing.get(&app).map_or_else(Instant::now, |(_, since)| *since);
            standing.insert(app.clone(), (how.to_owned(), since));
        }
        standing.retain(|app, (how, since)| !ends(app, how, since.elapsed()));
        let annotations = standing.get(&app).map(|(how, _)| json!({ REFRESH: how }));
        let metadata = json!({ "name": app, "resourceVersion": "7", "annotations": annotations });
        Answer::Object(object(&metadata))
    });
    (FieldsClient::new(Applications::of(&client, &argocd(&["team"]))), asked_for)
}

fn sorted(asked_for: &Mutex<Vec<String>>) -> Vec<String> {
    let mut asked_for = asked_for.lock().unwrap().clone();
    asked_for.sort();
    asked_for
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_was_missed_is_asked_for_again_and_hard() {
    let second = Duration::from_secs(1);
    let (fields, asked_for) =
        refreshing(move |app, how, waited| how == "hard" || (app == "b" && waited > second));
    let began = Instant::now();
    let [a, b] = ["a", "b"].map(|app| AppAddress::own(app, "p"));
    let (a, b) = tokio::join!(fields.refresh(&a), fields.refresh(&b));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    assert_eq!(sorted(&asked_for), ["a hard", "a normal", "b normal"]);
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn refreshes_that_are_all_slow_are_asked_for_once() {
    let (fields, asked_for) = refreshing(|_, _, waited| waited > Duration::from_secs(40));
    let [a, b] = ["a", "b"].map(|app| AppAddress::own(app, "p"));
    let (a, b) = tokio::join!(fields.refresh(&a), fields.refresh(&b));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    assert_eq!(sorted(&asked_for), ["a normal", "b normal"]);
}

#[tokio::test(start_paused = true)]
async fn an_application_is_written_in_its_own_namespace() {
    let path = |namespace: &str| {
        format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/vault")
    };
    for namespace in ["", "argocd", "team"] {
        let server = scripted::Server::default();
        for there in ["argocd", "team"] {
            server.put(&path(there), json!({ "spec": { "project": "p" } }));
        }
        let fields = FieldsClient::new(Applications::of(&server.client(), &argocd(&["team"])));
        let vault = AppAddress { namespace: namespace.into(), ..AppAddress::own("vault", "p") };
        let id = "0123456789ab/vault/1/1".parse().unwrap();
        let revisions = Revisions::default();
        let request = SyncRequest { operation: &id, revisions: &revisions, prune: false };
        fields.sync(&vault, request).await.unwrap();
        fields.terminate(&vault).await.unwrap();
        fields.delete_orphaning(&vault).await.unwrap();
        let meant = path(if namespace == "team" { "team" } else { "argocd" });
        let asked = server.asked();
        let changes: Vec<_> = asked.iter().filter(|one| one.method != Method::GET).collect();
        assert_eq!(changes.len(), 3);
        assert!(asked.iter().all(|one| one.path.starts_with(&meant)), "{asked:?}");
    }
}
