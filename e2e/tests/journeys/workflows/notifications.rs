//! Argo CD's notifications tell people what automatic deployments come to, as the documentation says.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::{World, until};
use tiphys_lab::repository::Behaviour;
use tiphys_model::platform::Retry;
use tokio::net::TcpListener;

use super::automatic;

const PAGE: &str = include_str!("../../../../docs/notifications.md");
const TRIGGERS: [&str; 2] = ["on-tiphys-failed", "on-tiphys-recovered"];

pub(crate) async fn tell_what_deployments_come_to(world: Arc<World>) {
    let mut site = automatic::arrange(&world, "wf-told").await;
    let chat = Chat::open().await;
    let mut settings = settings_of_the_page();
    let api = format!("http://{}:{}/", world.git.host(), chat.port);
    let service = json!({ "token": "any", "apiURL": api });
    settings.insert("service.slack".to_owned(), service.to_string());
    let maps = site.objects("v1", "ConfigMap", Some("argocd"));
    let patch = Patch::Merge(json!({ "data": settings }));
    let name = "argocd-notifications-cm";
    maps.patch(name, &PatchParams::default(), &patch).await.expect("the settings");
    let subscription =
        |trigger| (format!("notifications.argoproj.io/subscribe.{trigger}.slack"), "team");
    let subscriptions: BTreeMap<String, &str> = TRIGGERS.map(subscription).into();
    let patch = Patch::Merge(json!({ "metadata": { "annotations": subscriptions } }));
    let root = site.platform.root_name();
    site.applications().patch(&root, &PatchParams::default(), &patch).await.expect("the root app");

    let api = format!("{}-api", site.platform.name);
    let app = site.platform.app_mut(&api).expect("an app");
    app.behaviour = Behaviour::FailsToSync;
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    let bad = automatic::everything_changes(&mut site, "an app that cannot be applied").await;
    let failed = format!("{root}: {bad} is not deployed: {api}: ");
    until("people are told of the failure", async || chat.has(&failed)).await;

    site.platform.app_mut(&api).expect("an app").behaviour = Behaviour::ConfigOnly;
    let good = automatic::everything_changes(&mut site, "mended").await;
    let recovered = format!("{root} works again: {good} is deployed");
    until("people are told that it works again", async || chat.has(&recovered)).await;
    assert_eq!(chat.messages().len(), 2, "{:#?}", chat.messages());

    let nothing: BTreeMap<String, Value> =
        settings.into_keys().map(|key| (key, Value::Null)).collect();
    let patch = Patch::Merge(json!({ "data": nothing }));
    maps.patch(name, &PatchParams::default(), &patch).await.expect("the settings");
    automatic::take_down(&site).await;
    site.close().await;
}

/// The data of the ConfigMap that the page shows.
fn settings_of_the_page() -> BTreeMap<String, String> {
    let (_, rest) = PAGE.split_once("```yaml\n").expect("a block");
    let (block, _) = rest.split_once("```").expect("its end");
    let mut map: BTreeMap<String, BTreeMap<String, String>> =
        serde_saphyr::from_str(block).expect("YAML");
    map.remove("data").expect("data")
}

/// What Slack is to the notifications: it takes messages.
struct Chat {
    port: u16,
    messages: Arc<Mutex<Vec<String>>>,
}

impl Chat {
    async fn open() -> Chat {
        let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let heard = messages.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let heard = heard.clone();
                let service = service_fn(move |request| answer(heard.clone(), request));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Chat { port, messages }
    }

    fn messages(&self) -> Vec<String> {
        self.messages.lock().expect("nobody panics with it").clone()
    }

    fn has(&self, beginning: &str) -> bool {
        self.messages().iter().any(|message| message.starts_with(beginning))
    }
}

async fn answer(
    heard: Arc<Mutex<Vec<String>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_message = request.uri().path() == "/chat.postMessage";
    if let Ok(body) = request.into_body().collect().await
        && is_message
    {
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        let text = body.split('&').find_map(|field| field.strip_prefix("text="));
        heard.lock().expect("nobody panics with it").push(decoded(text.unwrap_or_default()));
    }
    let taken = json!({ "ok": true, "channel": "C1", "ts": "1.1" });
    Ok(Response::new(Full::from(taken.to_string())))
}

/// A field of a form.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
