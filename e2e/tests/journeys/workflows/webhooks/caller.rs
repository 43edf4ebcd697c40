//! A Git server, as far as it calls webhooks.

use std::error::Error;

use http::{Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::ResourceExt;
use kube::api::ListParams;
use ring::hmac;
use serde_json::Value;
use tiphys_e2e::Site;
use tokio::net::TcpStream;

use super::{ARGO, NAMESPACE};

pub(super) type Headers = Vec<(&'static str, String)>;

/// Nobody looks into it but to check the signature.
pub(super) const BODY: &[u8] = b"{}";

/// Headers as GitHub sends them.
pub(super) fn signed(secret: &str, body: &[u8]) -> Headers {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    vec![("x-github-event", "push".to_owned()), ("x-hub-signature-256", format!("sha256={digits}"))]
}

pub(super) fn bearer(secret: &str) -> Headers {
    vec![("authorization", format!("Bearer {secret}"))]
}

pub(super) struct Webhook {
    object: String,
    address: String,
}

impl Webhook {
    pub(super) async fn of(site: &Site, trigger: &str) -> Webhook {
        let labels =
            format!("tiphys.dev/trigger={trigger},tiphys.dev/platform={}", site.platform.name);
        let sources = site.objects(ARGO, "EventSource", Some(NAMESPACE));
        let found = sources.list(&ListParams::default().labels(&labels)).await.expect("a list");
        let object = found.items.first().expect("an EventSource").name_any();
        let services = site.objects("v1", "Service", Some(NAMESPACE));
        let service = services.get(&format!("{object}-eventsource-svc")).await.expect("a Service");
        let address = service.data["spec"]["clusterIP"].as_str().expect("an address").to_owned();
        Webhook { object, address }
    }

    /// What it answers.
    pub(super) async fn call(&self, headers: &Headers, body: &[u8]) -> StatusCode {
        self.tried(headers, body).await.expect("an answer")
    }

    /// As a Git server that does not try again.
    pub(super) async fn try_call(&self, secret: &str) {
        self.tried(&signed(secret, BODY), BODY).await.ok();
    }

    async fn tried(&self, headers: &Headers, body: &[u8]) -> Result<StatusCode, Box<dyn Error>> {
        let stream = TcpStream::connect((&*self.address, 12_000)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::post("/push")
            .header(header::HOST, &self.address)
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::<Bytes>::from(body.to_vec()))?;
        let answer = sender.send_request(request).await;
        connection.abort();
        Ok(answer?.status())
    }

    /// The last call that came through to the Sensor.
    pub(super) async fn heard(&self, site: &Site) -> Value {
        let notes = site.objects("v1", "ConfigMap", Some(NAMESPACE));
        notes.get(&self.object).await.expect("a ConfigMap").data["data"]["call"].clone()
    }
}
