//! A call of a webhook as its Git server makes it, followed as far as it gets: to the EventSource, over the
//! EventBus to the Sensor, and to Argo CD.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, Client};
use ring::hmac;
use secrecy::{ExposeSecret, SecretSlice};
use tiphys_argocd::Application;
use tiphys_cluster::forward::{Forward, ForwardError, forward, ready_pod};
use tiphys_cluster::names::{self, EVENTS_NAMESPACE};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, PlatformName, PushProvider, chain};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{EVENT, PORT, SECRET_KEY, Webhook, notes, webhooks};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// For the bus and for Argo CD.
const REACTION_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(250);
/// What GitHub sends first to a new webhook, and what means nothing to anybody.
const BODY: &[u8] = br#"{"zen":"tiphys triggers test"}"#;

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    EventSource,
    Sensor,
    ArgoCd,
}

/// Where a call has got stuck.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum TrialError {
    Request(#[from] RequestError),
    Forward(#[from] ForwardError),
    Unknown {
        trigger: String,
        known: Vec<String>,
    },
    NoSecret {
        name: String,
    },
    /// No pod listens.
    NotReady {
        name: String,
    },
    /// The EventSource did not accept the call.
    Refused {
        name: String,
        why: String,
    },
    /// The Sensor did not receive it.
    NotHeard {
        name: String,
    },
    /// Argo CD did not compare the root app.
    NotCompared {
        root: String,
        sensor: String,
    },
}

impl Explain for TrialError {
    fn explain(&self) -> Explanation {
        let stuck = |what: String, why: &str| Explanation::new(Exit::Failed, what, why);
        let logs = |label: &str, name: &str| {
            format!("kubectl -n {EVENTS_NAMESPACE} logs -l {label}={name}")
        };
        match self {
            TrialError::Request(error) => error.explain(),
            TrialError::Forward(error) => error.explain(),
            TrialError::Unknown { trigger, known } => {
                let why = if known.is_empty() {
                    "the platform has no webhooks in this cluster".to_owned()
                } else {
                    format!("push triggers of the platform: {}", known.join(", "))
                };
                Explanation::new(Exit::NotFound, format!("unknown push trigger `{trigger}`"), why)
                    .hint("add a trigger with `push` to the platform file, and run `tiphys configure`")
            }
            TrialError::NoSecret { name } => Explanation::new(
                Exit::Configuration,
                format!("the Secret {name} in {EVENTS_NAMESPACE} has no `{SECRET_KEY}`"),
                "without it, the EventSource refuses every call",
            )
            .hint("run `tiphys configure --credentials DIR` with the file `argocd/webhook-secret` in DIR"),
            TrialError::NotReady { name } => stuck(
                format!("no pod of the EventSource {name} is ready"),
                "calls of the Git server fail",
            )
            .hint(format!(
                "kubectl -n {EVENTS_NAMESPACE} describe eventsource,eventbus; kubectl -n {EVENTS_NAMESPACE} \
                 get pods,events"
            )),
            TrialError::Refused { name, why } => {
                stuck(format!("the EventSource {name} did not accept the call"), why)
                    .hint(logs("eventsource-name", name))
            }
            TrialError::NotHeard { name } => stuck(
                format!("the Sensor {name} did not receive the call"),
                "the EventSource accepted it, but the EventBus or the Sensor did not pass it on",
            )
            .hint(format!(
                "kubectl -n {EVENTS_NAMESPACE} describe eventbus,sensor; {}",
                logs("sensor-name", name)
            )),
            TrialError::NotCompared { root, sensor } => stuck(
                format!("Argo CD did not compare the root app `{root}`"),
                "the Sensor received the call, but could not request the refresh, or Argo CD is behind",
            )
            .hint(format!(
                "{}; kubectl -n {EVENTS_NAMESPACE} get events",
                logs("sensor-name", sensor)
            )),
        }
    }
}

/// Calls the webhook of a trigger, and says how far the call has come, and after how long.
pub async fn call(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
    trigger: &str,
    reached: &dyn Fn(Station, Duration),
) -> Result<(), TrialError> {
    let known = webhooks(client, argocd, platform).await?;
    let Some(webhook) = known.iter().find(|webhook| webhook.name == trigger) else {
        let known = known.into_iter().map(|webhook| webhook.name).collect();
        return Err(TrialError::Unknown { trigger: trigger.to_owned(), known });
    };
    let secret = secret(client, webhook).await?;
    let compared = compared(client, argocd, platform).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), EVENTS_NAMESPACE);
    let name = webhook.object.clone();
    let label = format!("eventsource-name={name}");
    let what = format!("cannot reach the EventSource {name}");
    let pod = ready_pod(&pods, &label, &what).await?.and_then(|pod| pod.metadata.name);
    let pod = pod.ok_or_else(|| TrialError::NotReady { name: name.clone() })?;
    let forward = forward(&pods, &pod, PORT, &what).await?;
    let began = Instant::now();
    let sent = tokio::time::timeout(ANSWER_TIMEOUT, post(forward, webhook.provider, &secret)).await;
    let late = |_| Err(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()));
    sent.unwrap_or_else(late).map_err(|why| TrialError::Refused { name: name.clone(), why })?;
    reached(Station::EventSource, began.elapsed());

    let heard = async || {
        let note = notes(client).get_opt(&name).await.map_err(RequestError::because(&what))?;
        let mut now = webhook.clone();
        now.heard(note.as_ref());
        Ok(now.call != webhook.call)
    };
    if !happens(heard).await? {
        return Err(TrialError::NotHeard { name });
    }
    reached(Station::Sensor, began.elapsed());

    let compared_again = async || Ok(self::compared(client, argocd, platform).await? > compared);
    if !happens(compared_again).await? {
        return Err(TrialError::NotCompared { root: names::root_of(platform), sensor: name });
    }
    reached(Station::ArgoCd, began.elapsed());
    Ok(())
}

/// Whether it comes about in time.
async fn happens(look: impl AsyncFn() -> Result<bool, RequestError>) -> Result<bool, RequestError> {
    let began = Instant::now();
    while !look().await? {
        if began.elapsed() >= REACTION_TIMEOUT {
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(true)
}

async fn secret(client: &Client, webhook: &Webhook) -> Result<SecretSlice<u8>, TrialError> {
    let name = &webhook.object;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), EVENTS_NAMESPACE);
    let what = format!("cannot read the Secret {name} in {EVENTS_NAMESPACE}");
    let found = secrets.get_opt(name).await.map_err(RequestError::because(what))?;
    let value = found.and_then(|found| found.data).and_then(|mut data| data.remove(SECRET_KEY));
    value
        .map(|value| SecretSlice::from(value.0))
        .ok_or_else(|| TrialError::NoSecret { name: name.clone() })
}

/// When Argo CD compared the root app last.
async fn compared(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Option<Timestamp>, RequestError> {
    let root = names::root_of(platform);
    let applications: Api<Application> = Api::namespaced(client.clone(), argocd);
    let what = format!("cannot read the root app `{root}`");
    let found = match applications.get_opt(&root).await.map_err(RequestError::because(what)) {
        Err(error) if error.cause() == Cause::NotFound => None,
        found => found?,
    };
    Ok(found.and_then(|found| found.status.reconciled_at?.parse().ok()))
}

/// The error says why it was not taken.
async fn post(
    forward: Forward,
    provider: PushProvider,
    secret: &SecretSlice<u8>,
) -> Result<(), String> {
    let Forward { stream, refused } = forward;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| chain(&error))?;
    // Ends with this: nobody is left waiting for a server that hangs.
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let sent = sender.send_request(request(provider, secret)?).await;
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => return Err(refused.await.unwrap_or_else(|_| chain(&error))),
    };
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let body = answer.into_body().collect().await.map_err(|error| chain(&error))?.to_bytes();
    Err(format!("it answered {status}: {}", String::from_utf8_lossy(&body).trim()))
}

fn request(
    provider: PushProvider,
    secret: &SecretSlice<u8>,
) -> Result<Request<Full<Bytes>>, String> {
    let request = Request::post(format!("/{EVENT}"))
        .header(header::HOST, "localhost")
        .header(header::USER_AGENT, "tiphys")
        .header(header::CONTENT_TYPE, "application/json");
    let secret = secret.expose_secret();
    let request = match provider {
        PushProvider::GitHub => request
            .header("x-github-event", "ping")
            .header("x-hub-signature-256", signature(secret, BODY)),
        PushProvider::Generic => {
            let token = [b"Bearer ", secret].concat();
            let mut token = header::HeaderValue::from_bytes(&token)
                .map_err(|_| "the secret is not fit for a header".to_owned())?;
            token.set_sensitive(true);
            request.header(header::AUTHORIZATION, token)
        }
    };
    request.body(Full::from(BODY)).map_err(|error| chain(&error))
}

/// As GitHub signs.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), body);
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_signed_as_github_signs_them() {
        // The example of GitHub's own documentation.
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(signature(b"It's a Secret to Everybody", b"Hello, World!"), expected);
    }

    #[test]
    fn each_provider_shows_the_secret_in_its_way() {
        let secret = SecretSlice::from(b"hunter2".to_vec());
        let github = request(PushProvider::GitHub, &secret).unwrap();
        assert_eq!(github.headers()["x-hub-signature-256"], signature(b"hunter2", BODY));
        let generic = request(PushProvider::Generic, &secret).unwrap();
        assert_eq!(generic.headers()["authorization"], "Bearer hunter2");
        assert!(!format!("{generic:?}").contains("hunter2"), "it cannot be printed");
        assert!(request(PushProvider::Generic, &SecretSlice::from(b"a\nb".to_vec())).is_err());
    }
}
