use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tiphys_cluster::encoded;
use tiphys_cluster::scripted::Server;
use tiphys_spec::{Source, Sources};

use super::*;

const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";

/// A platform whose file says this in `spec.argocd`.
fn platform(argocd: &str) -> Platform {
    let text = format!(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: prod }}\n\
         spec:\n  argocd: {argocd}\n  stacks: [{{ name: s, apps: [{{ name: a }}] }}]\n"
    );
    let source = Source::new("platform.yaml", text.into()).unwrap();
    tiphys_spec::platform(&Sources::new(vec![source])).unwrap()
}

/// A cluster with an Argo CD and these Secrets.
fn cluster(secrets: &[(&str, Value)]) -> Server {
    let server = Server::default();
    let kind = |name: &str| json!({ "name": name, "singularName": "", "namespaced": true, "kind": "", "verbs": [] });
    let kinds = ["applications", "appprojects"].map(kind);
    let list = json!({ "groupVersion": "argoproj.io/v1alpha1", "resources": kinds });
    server.put("/apis/argoproj.io/v1alpha1", list);
    for map in ["argocd-cm", "argocd-rbac-cm"] {
        server
            .put(&format!("/api/v1/namespaces/argocd/configmaps/{map}"), json!({ "metadata": {} }));
    }
    for (name, data) in secrets {
        let secret = json!({ "metadata": { "name": name }, "data": data });
        server.put(&format!("{SECRETS}/{name}"), secret);
    }
    server
}

/// The token and the address that requests go to, or why there are none.
async fn found(
    argocd: &str,
    purpose: Purpose,
    secrets: &[(&str, Value)],
) -> Result<(String, String), CredentialsError> {
    let client = cluster(secrets).client();
    let (token, endpoint) = find(&client, &platform(argocd), purpose).await?;
    Ok((token.expose_secret().to_owned(), endpoint.base().to_string()))
}

fn own(name: &str) -> (&str, Value) {
    (name, json!({ "token": encoded("ours"), "path": encoded("/found") }))
}

fn given() -> (&'static str, Value) {
    ("handed-out", json!({ "token": encoded("theirs") }))
}

#[tokio::test]
async fn what_the_platform_file_says_counts_more_than_what_was_found() {
    let deploy = [own("tiphys-prod-deploy")];
    let of = async |argocd: &str| found(argocd, Purpose::Deploy, &deploy).await.unwrap().1;
    assert_eq!(of("{}").await, "http://argocd-server.argocd.svc/found");
    assert_eq!(of("{ rootPath: / }").await, "http://argocd-server.argocd.svc");
    assert_eq!(of("{ server: a.example }").await, "https://a.example:443/found");
    let plain = of("{ server: a.example, insecure: true, rootPath: x }").await;
    assert_eq!(plain, "http://a.example:80/x");
}

#[tokio::test]
async fn a_server_at_an_address_is_never_trusted_by_what_was_found_in_the_cluster() {
    let torn = json!({ "token": encoded("ours"), "ca.crt": encoded("no certificate") });
    let deploy = [("tiphys-prod-deploy", torn)];
    let in_cluster = found("{}", Purpose::Deploy, &deploy).await;
    assert!(matches!(in_cluster, Err(CredentialsError::Certificate(_))));
    let elsewhere = found("{ server: a.example }", Purpose::Deploy, &deploy).await.unwrap();
    assert_eq!(elsewhere.1, "https://a.example:443");
    let insecure = found("{ insecure: true }", Purpose::Deploy, &deploy).await.unwrap();
    assert_eq!(insecure.1, "http://argocd-server.argocd.svc");
}

#[tokio::test]
async fn a_token_that_was_handed_out_deploys_and_does_not_tear_down() {
    let both = [given(), own("tiphys-prod-deploy"), own("tiphys-prod-teardown")];
    let token = async |purpose| {
        found("{ tokenSecret: handed-out }", purpose, &both).await.map(|found| found.0).unwrap()
    };
    assert_eq!(token(Purpose::Deploy).await, "theirs");
    assert_eq!(token(Purpose::Teardown).await, "ours");
}

#[tokio::test]
async fn a_server_at_an_address_with_a_token_needs_nothing_of_configure() {
    let argocd = "{ server: a.example, tokenSecret: handed-out }";
    let there = found(argocd, Purpose::Deploy, &[given()]).await.unwrap();
    assert_eq!(there, ("theirs".to_owned(), "https://a.example:443".to_owned()));
    let found = found("{ tokenSecret: handed-out }", Purpose::Deploy, &[given()]).await;
    let told = found.unwrap_err().explain();
    assert!(told.why.contains("tiphys-prod-deploy does not exist"), "{}", told.why);
    assert!(told.next.unwrap().contains("tiphys configure"));
}

#[tokio::test]
async fn what_lacks_is_told_with_who_makes_it() {
    let argocd = "{ tokenSecret: handed-out }";
    let empty = [("handed-out", json!({ "token": "" }))];
    for (secrets, why) in [
        (&[][..], "the Secret handed-out does not exist in the namespace argocd"),
        (&empty[..], "the Secret handed-out has no key `token`"),
    ] {
        let told = found(argocd, Purpose::Deploy, secrets).await.unwrap_err().explain();
        assert_eq!((told.exit, told.why.as_str()), (Exit::Configuration, why));
        assert!(told.next.unwrap().contains("`spec.argocd.tokenSecret`"));
    }
}
