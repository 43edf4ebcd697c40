//! A way to the cluster's API server that a test can spoil: some requests get another answer, or
//! none.

use std::path::Path;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::json;
use tokio::net::TcpListener;

/// What a request gets instead of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiled {
    /// It is refused, and does not arrive.
    Refused(u16),
    /// The connection ends without an answer.
    Cut,
}

/// Decides about each request.
type Spoil = Box<dyn FnMut(&Request<Incoming>) -> Option<Spoiled> + Send>;

pub struct Proxy {
    port: u16,
    spoil: Arc<Mutex<Spoil>>,
}

impl Proxy {
    /// Requests are sent with the client's own rights, and none is spoiled.
    pub async fn start(client: Client) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let nothing: Spoil = Box::new(|_| None);
        let spoil = Arc::new(Mutex::new(nothing));
        let decides = spoil.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, spoil) = (client.clone(), decides.clone());
                let service =
                    service_fn(move |request| answer(client.clone(), spoil.clone(), request));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // Whoever was cut off has noticed.
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Proxy { port, spoil }
    }

    pub fn spoil(&self, how: impl FnMut(&Request<Incoming>) -> Option<Spoiled> + Send + 'static) {
        *self.spoil.lock().expect("nobody panics with it") = Box::new(how);
    }

    /// A kubeconfig that leads through here.
    pub fn kubeconfig(&self, original: &Path, into: &Path) {
        let mut config = Kubeconfig::read_from(original).expect("the kubeconfig can be read");
        for named in &mut config.clusters {
            let cluster = named.cluster.get_or_insert_default();
            cluster.server = Some(format!("http://127.0.0.1:{}", self.port));
            (cluster.certificate_authority, cluster.certificate_authority_data) = (None, None);
        }
        // JSON is YAML.
        let text = serde_json::to_string(&config).expect("a kubeconfig can be written");
        std::fs::write(into, text).expect("the file can be written");
    }
}

async fn answer(
    client: Client,
    spoil: Arc<Mutex<Spoil>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let spoiled = (spoil.lock().expect("nobody panics with it"))(&request);
    match spoiled {
        Some(Spoiled::Cut) => Err("cut off".into()),
        Some(Spoiled::Refused(code)) => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "spoiled by a test", "reason": "Spoiled", "code": code,
            });
            let answer = Response::builder()
                .status(StatusCode::from_u16(code)?)
                .header("content-type", "application/json");
            Ok(answer.body(Body::from(status.to_string().into_bytes()))?)
        }
        None => {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes().to_vec();
            let mut request = Request::new(Body::from(body));
            (*request.method_mut(), *request.headers_mut()) = (parts.method, parts.headers);
            *request.uri_mut() = parts.uri;
            request.headers_mut().remove("host");
            Ok(client.send(request).await?)
        }
    }
}
