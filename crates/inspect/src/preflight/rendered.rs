//! Asking Argo CD what the platform's apps render, where it is there already and `tiphys configure`
//! has set up the platform in it.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::{AppAddress, Application, ArgoCdClient, hooks};
use tiphys_assess::preflight::rendered::{App, Kind, Look, NotRead, Rendered, Unrendered, judge};
use tiphys_assess::preflight::{Findings, Problem};
use tiphys_cluster::Kinds;
use tiphys_cluster::names::Purpose;
use tiphys_model::Platform;
use tokio::time::{Instant, timeout_at};

use super::{Preflight, applications, in_time, within};

/// How many apps Argo CD is asked for at a time: others want it to render for them, too.
const APPS_AT_ONCE: usize = 8;
/// How long all apps together may take. What Argo CD has rendered before, it answers at once.
const APPS_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn look(preflight: &Preflight<'_>) -> Findings {
    let mirrors = preflight.bootstrap().map_or(&[][..], |bootstrap| &bootstrap.images);
    let read = match in_time(preflight.access.client()).await {
        Ok(client) => read(&client, preflight.platform).await,
        Err(_) => Err(NotRead::NoCluster),
    };
    Findings { checks: judge(&read, mirrors).into(), ..Findings::default() }
}

async fn read(client: &Client, platform: &Platform) -> Result<Look, NotRead> {
    let found = applications::list(client, platform).await?.ok_or(NotRead::NoArgoCd)?;
    if found.is_empty() {
        return Err(NotRead::NoApplications);
    }
    let api = match in_time(ArgoCdClient::new(client, platform, Purpose::Deploy)).await? {
        ArgoCdClient::Rest(api) => api,
        ArgoCdClient::Fields(_) => return Err(NotRead::NoApi),
    };
    let absent = platform.apps.len().saturating_sub(found.len());
    let ask = |app: AppAddress| {
        let api = api.clone();
        async move { api.manifests(&app).await }
    };
    let (apps, namespaces, kinds) =
        tokio::join!(render(found, ask), namespaces(client), kinds(client));
    Ok(Look { apps, absent, namespaces, kinds })
}

/// What each app renders, whatever comes of the others.
async fn render<F>(applications: Vec<Application>, ask: impl Fn(AppAddress) -> F) -> Vec<App>
where
    F: Future<Output = Result<Vec<Value>, CallError>>,
{
    let deadline = Instant::now() + APPS_TIMEOUT;
    let ask = &ask;
    let asked = applications.into_iter().map(|application| async move {
        // When time is over, nothing new is begun.
        let answer = if Instant::now() < deadline {
            timeout_at(deadline, ask(application.address())).await.ok()
        } else {
            None
        };
        app(&application, answer)
    });
    // In the order of answers: one that hangs does not take the place of those behind it.
    let mut apps: Vec<App> = stream::iter(asked).buffer_unordered(APPS_AT_ONCE).collect().await;
    apps.sort_by(|one, other| one.name.cmp(&other.name));
    apps
}

/// An app, with the answer to what it renders, if there was one in time.
fn app(application: &Application, answer: Option<Result<Vec<Value>, CallError>>) -> App {
    let rendered = match answer {
        Some(Ok(objects)) => {
            Ok(Rendered::of(objects.iter().filter(|object| !hooks::is_skipped(object))))
        }
        Some(Err(error)) => Err(unrendered(error)),
        None => Err(Unrendered::Late(APPS_TIMEOUT)),
    };
    let destination = application.destination();
    App {
        name: application.name().to_owned(),
        namespace: destination.namespace.to_string(),
        elsewhere: destination.other_cluster.is_some(),
        synced: application.was_synced(),
        rendered,
    }
}

fn unrendered(error: CallError) -> Unrendered {
    match error {
        CallError::Refused { refusal: Refusal::Unauthenticated | Refusal::Forbidden, message } => {
            Unrendered::Denied(message)
        }
        // A source that cannot be rendered is an error inside of Argo CD's server, too.
        CallError::Refused { message, .. } | CallError::Unanswered { message } => {
            Unrendered::Failed(message)
        }
    }
}

async fn namespaces(client: &Client) -> Result<BTreeSet<String>, Problem> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let all = ListParams::default();
    let listed = within("cannot list the namespaces", namespaces.list_metadata(&all)).await?;
    Ok(listed.items.into_iter().filter_map(|one| one.metadata.name).collect())
}

async fn kinds(client: &Client) -> Result<BTreeSet<Kind>, Problem> {
    let served = in_time(Kinds::served(client)).await?;
    let kind = |one: kube::api::GroupVersionKind| Kind {
        group: one.group,
        version: one.version,
        kind: one.kind,
    };
    Ok(served.into_iter().map(kind).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use http::Method;
    use serde_json::json;
    use tiphys_cluster::scripted::{Answer, Server};

    use super::*;
    use crate::preflight::tests::platform;

    fn application(name: &str, status: &Value) -> Application {
        let destination = json!({ "name": "in-cluster", "namespace": "shop" });
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "project": "apps", "destination": destination },
            "status": status,
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn one_that_fails_does_not_hide_the_others() {
        let all = ["bad", "good", "denied"].map(|name| application(name, &json!({})));
        let skip = json!({ "argocd.argoproj.io/hook": "Skip" });
        let objects = [
            json!({ "apiVersion": "v1", "kind": "Service" }),
            json!({ "apiVersion": "x.org/v1", "kind": "X", "metadata": { "annotations": skip } }),
        ];
        let apps = render(all.into(), |app| {
            let message = app.project.to_string();
            let denied = CallError::Refused { refusal: Refusal::Forbidden, message };
            ready(match &*app.name {
                "bad" => Err(CallError::Unanswered { message: "no chart".to_owned() }),
                "denied" => Err(denied),
                _ => Ok(objects.to_vec()),
            })
        })
        .await;
        let [bad, denied, good] = &apps[..] else { panic!("three") };
        assert_eq!(bad.rendered, Err(Unrendered::Failed("no chart".to_owned())));
        assert_eq!(denied.rendered, Err(Unrendered::Denied("apps".to_owned())));
        let kinds: Vec<String> =
            good.rendered.iter().flat_map(|one| &one.kinds).map(ToString::to_string).collect();
        assert_eq!(kinds, ["v1 Service"], "what is never applied needs no kind");
        assert_eq!((&*good.namespace, good.elsewhere, good.synced), ("shop", false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_are_asked_at_a_time_and_all_have_one_deadline() {
        let begun = Instant::now();
        let asked = Cell::new(0);
        let all = (0..20).map(|n| application(&format!("app-{n}"), &json!({}))).collect();
        let ask = async || {
            asked.set(asked.get() + 1);
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(Vec::new())
        };
        let apps = render(all, |_| ask()).await;
        let in_time = apps.iter().filter(|app| app.rendered.is_ok()).count();
        // Eight at once, eight more after 20 seconds, and nothing new after 30.
        assert_eq!((asked.get(), in_time, begun.elapsed()), (16, 8, APPS_TIMEOUT));
        let late: Vec<&App> = apps.iter().filter(|app| app.rendered.is_err()).collect();
        assert!(late.iter().all(|app| app.rendered == Err(Unrendered::Late(APPS_TIMEOUT))));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_does_not_hold_up_the_others() {
        let all = (0..20).map(|n| application(&format!("app-{n}"), &json!({}))).collect();
        let ask = async |app: String| {
            let seconds = if app == "app-0" { 3_600 } else { 1 };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Vec::new())
        };
        let apps = render(all, |app| ask(app.name.to_string())).await;
        let late = apps.iter().filter(|app| app.rendered.is_err()).map(|app| &*app.name);
        assert_eq!(late.collect::<Vec<_>>(), ["app-0"]);
    }

    #[tokio::test]
    async fn what_is_not_there_yet_is_the_reason_to_read_nothing() {
        let by_fields = platform("  argocd: { access: kubernetes }\n");
        let by_api = platform("");
        let name = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a";
        let in_project = |project: &str| json!({ "spec": { "project": project } });
        let server = Server::default();
        server.next(Method::GET, "applications", Answer::refused(404, "no such kind"));
        assert_eq!(not_read(&server, &by_api).await, NotRead::NoArgoCd);
        assert_eq!(not_read(&server, &by_api).await, NotRead::NoApplications);
        server.put(name, in_project("theirs"));
        assert_eq!(not_read(&server, &by_api).await, NotRead::NoApplications);
        server.put(name, in_project(&by_api.argocd.projects[0]));
        assert_eq!(not_read(&server, &by_fields).await, NotRead::NoApi);
        // Whether that is an Argo CD at all, nobody says.
        server.next_where(|asked| asked.path.ends_with("/v1alpha1"), Answer::refused(403, "no"));
        let NotRead::Problem(problem) = not_read(&server, &by_api).await else {
            panic!("a problem")
        };
        assert!(problem.why.starts_with("the deploy token of the platform"), "{}", problem.why);
        server.next(Method::GET, "applications", Answer::Cut);
        assert_eq!(not_read(&server, &by_api).await, NotRead::NoCluster);
        assert_eq!(server.writes(), Vec::<String>::new());
    }

    async fn not_read(server: &Server, platform: &Platform) -> NotRead {
        read(&server.client(), platform).await.map(|look| look.apps.len()).unwrap_err()
    }

    #[tokio::test]
    async fn namespaces_and_kinds_are_read_from_the_cluster() {
        let server = Server::default();
        server.put("/api/v1/namespaces/shop", json!({}));
        let resource = json!({
            "resource": "pods", "scope": "Namespaced", "verbs": ["list"],
            "responseKind": { "group": "", "version": "v1", "kind": "Pod" },
        });
        let versions = json!([{ "version": "v1", "resources": [resource] }]);
        let core = json!({ "metadata": { "name": "" }, "versions": versions });
        server.put("/api", json!({ "kind": "APIGroupDiscoveryList", "items": [core] }));
        server.put("/apis", json!({ "kind": "APIGroupDiscoveryList", "items": [] }));
        let client = server.client();
        assert_eq!(namespaces(&client).await.unwrap(), BTreeSet::from(["shop".to_owned()]));
        let kinds: Vec<String> =
            kinds(&client).await.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(kinds, ["v1 Pod"]);
    }

    #[tokio::test]
    async fn an_operation_or_a_history_tells_of_a_sync() {
        for (status, synced) in [
            (json!({}), false),
            (json!({ "history": [] }), false),
            (json!({ "history": [{ "id": 0, "revision": "abc" }] }), true),
            (json!({ "operationState": { "phase": "Failed" } }), true),
        ] {
            let all = vec![application("a", &status)];
            let apps = render(all, |_| ready(Ok(Vec::new()))).await;
            assert_eq!(apps[0].synced, synced, "{status}");
        }
    }
}
