//! In which order generators are removed, and how we react to what is answered meanwhile.

use http::Method;
use serde_json::Value;
use tiphys_cluster::names::Purpose;
use tiphys_cluster::scripted::Answer;
use tiphys_model::Explain;

use std::collections::BTreeSet;

use super::find::Ours;
use super::*;
use crate::testkit;
use crate::testkit::argocd::{self, ROOT};
use tiphys_argocd::Application;
use tiphys_cluster::scripted::{self, Server};

const SET: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/set";

/// A root app, and an ApplicationSet that Argo CD would empty when it goes.
fn server() -> Server {
    let server = argocd::server(&[]);
    let cascade = "resources-finalizer.argocd.argoproj.io";
    server.put(SET, json!({ "metadata": { "finalizers": [cascade, "example.com/theirs"] } }));
    server
}

async fn remove_both(server: &Server) -> Result<(), TeardownError> {
    let (client, platform) = (server.client(), testkit::platform());
    let argocd = ArgoCdClient::new(&client, &platform, Purpose::Teardown).await?;
    let generators =
        vec![Generator::Application(ROOT.to_owned()), Generator::Set("set".to_owned())];
    remove(&client, &platform, &argocd, generators).await
}

#[tokio::test(start_paused = true)]
async fn each_goes_by_itself_and_leaves_its_children() {
    let server = server();
    remove_both(&server).await.unwrap();
    assert_eq!(
        server.writes(),
        [
            "DELETE applications/prod-root",
            "PATCH applicationsets/set",
            "DELETE applicationsets/set",
        ]
    );
    let asked = server.asked();
    let deleted = |kind: &str| {
        let of_kind = |path: &str| path.contains(&format!("/{kind}/"));
        asked.iter().find(|a| a.method == Method::DELETE && of_kind(&a.path)).unwrap().body.clone()
    };
    assert_eq!(deleted("applicationsets")["propagationPolicy"], "Orphan");
    let patched = asked.iter().find(|asked| asked.method == Method::PATCH).unwrap();
    assert_eq!(patched.body["metadata"]["finalizers"], json!(["example.com/theirs"]));
    assert!(deleted("applications")["preconditions"]["uid"].is_string(), "and no other");
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_already_is_passed_over() {
    let server = server();
    server.change(|objects| {
        objects.remove(SET);
        objects.remove(&argocd::application(ROOT));
    });
    remove_both(&server).await.unwrap();
    assert!(server.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_said_and_nothing_after_it_is_removed() {
    for (path, left) in [("applications/prod-root", true), ("applicationsets/set", false)] {
        for (code, exit) in scripted::REFUSALS {
            let server = server();
            server.next(Method::DELETE, path, Answer::refused(code, "no"));
            let error = remove_both(&server).await.unwrap_err();
            assert_eq!(error.explain().exit, exit, "{path} {code}: {error}");
            assert!(server.get(SET).is_some(), "{path} {code}");
            assert_eq!(server.get(&argocd::application(ROOT)).is_some(), left, "{path} {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_is_given_up_on() {
    let server = server();
    server.control(|objects, path| {
        if objects.get(path).is_none() {
            objects.put(path, json!({ "spec": {}, "metadata": { "finalizers": ["stuck"] } }));
        }
    });
    let began = Instant::now();
    let error = remove_both(&server).await.unwrap_err();
    assert_eq!(error.explain().why, "it still exists after 120 s");
    assert!(began.elapsed() < REMOVAL_TIMEOUT + 2 * POLL);
    assert!(server.get(SET).is_some());
}

fn application(name: &str, creates: &[(&str, &str)], owner: Option<&str>) -> Application {
    let resources: Vec<Value> = creates
        .iter()
        .map(|(kind, name)| json!({ "group": "argoproj.io", "kind": kind, "name": name }))
        .collect();
    let owners: Vec<Value> = owner
        .iter()
        .map(|name| json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": name, "uid": "1" }))
        .collect();
    serde_json::from_value(json!({
        "metadata": { "name": name, "ownerReferences": owners },
        "spec": { "project": "roots" },
        "status": { "resources": resources },
    }))
    .unwrap()
}

/// An Application in a project, made by a set.
fn made(name: &str, project: &str, set: &str) -> Application {
    let mut application = application(name, &[], Some(set));
    application.spec.project = project.to_owned();
    application
}

fn set(name: &str, project: &str) -> DynamicObject {
    let template = json!({ "spec": { "project": project } });
    serde_json::from_value(
        json!({ "metadata": { "name": name }, "spec": { "template": template } }),
    )
    .unwrap()
}

#[test]
fn a_set_is_the_platforms_by_its_template_its_applications_or_who_created_it() {
    let templated = "{{.project}}";
    let root = application("root", &[("ApplicationSet", "empty"), ("ApplicationSet", "far")], None);
    let applications = [
        root,
        made("web", "apps", "by-children"),
        made("stack", "roots", "by-generator"),
        made("patched", "apps", "by-patch"),
        made("theirs", "theirs", "of-others"),
    ];
    let sets = [
        set("by-template", "apps"),
        set("by-root-template", "roots"),
        set("by-children", templated),
        set("by-generator", templated),
        set("by-patch", "theirs"),
        set("empty", templated),
        set("far", "theirs"),
        set("of-others", templated),
        set("of-others-and-empty", templated),
    ];
    assert_eq!(
        sets_of(&applications, &sets).unwrap(),
        ["by-children", "by-generator", "by-patch", "by-root-template", "by-template", "empty"]
            .map(str::to_owned)
            .into()
    );
}

/// The sets among the platform's generators. `apps` and `roots` are its own projects.
fn sets_of(
    applications: &[Application],
    sets: &[DynamicObject],
) -> Result<BTreeSet<String>, TeardownError> {
    let mut argocd = testkit::platform().argocd;
    argocd.projects.push("default".to_owned());
    let ours = Ours {
        argocd: &argocd,
        root: "root".to_owned(),
        apps: &["a", "b"].map(str::to_owned).into(),
        own: ["apps", "roots"].map(str::to_owned).into(),
    };
    let found = ours.generators(applications, sets)?;
    let set = |generator: Generator| match generator {
        Generator::Set(name) => Some(name),
        Generator::Application(_) => None,
    };
    Ok(found.into_iter().filter_map(set).collect())
}

#[test]
fn in_a_shared_project_only_what_has_made_apps_of_the_platform_goes() {
    let applications = [made("a", "default", "ours"), made("theirs", "default", "of-others")];
    let sets = [set("ours", "default"), set("of-others", "default"), set("empty", "default")];
    assert_eq!(sets_of(&applications, &sets).unwrap(), ["ours".to_owned()].into());
}

#[test]
fn a_generator_that_others_need_is_not_removed() {
    let applications = [made("web", "apps", "all"), made("theirs", "theirs", "all")];
    let sets = [set("all", "{{.project}}")];
    let told = sets_of(&applications, &sets).unwrap_err().explain();
    assert_eq!(told.exit, tiphys_model::Exit::Configuration);
    assert_eq!(told.what, "cannot remove the ApplicationSet `all`");
    assert_eq!(told.why, "it also created Applications that are not part of this platform: theirs");

    let creates = [("Application", "a"), ("Application", "theirs")];
    let mut stack = application("stack", &creates, None);
    stack.spec.project = "default".to_owned();
    let others = made("theirs", "default", "theirs");
    let told = sets_of(&[stack.clone(), others], &[]).unwrap_err().explain();
    assert_eq!(told.what, "cannot remove the Application `stack`");

    let mut moved = made("a", "theirs", "theirs");
    moved.metadata.owner_references = None;
    assert!(sets_of(&[stack.clone(), moved], &[]).unwrap().is_empty(), "it is not ours any more");

    stack.spec.project = "elsewhere".to_owned();
    let told = sets_of(&[stack], &[]).unwrap_err().explain();
    assert!(told.why.ends_with("is not in the platform file"), "{}", told.why);
}
