//! How Argo CD's API server is reached: whether what the file says of it fits together.

use tiphys_model::ApiServer;
use tiphys_model::api_server::{ServerAddress, ServerTls};
use tiphys_model::platform::ArgoCdAccess;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::argocd::ArgoCdDocument;
use crate::document::server::{Scheme, ServerText};
use crate::source::{Span, Spanned};

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

pub(super) fn resolve(given: &mut ArgoCdDocument, problems: &mut Diagnostics) -> ApiServer {
    let insecure = given.insecure.as_ref().filter(|insecure| insecure.value);
    let insecure = insecure.map(|insecure| insecure.span);
    check_access(given, insecure, problems);
    if let Some(server) = &given.server {
        check_scheme(server, insecure, problems);
    }
    if let (Some(ca), Some(insecure)) = (&given.ca, insecure) {
        let title = "`ca` and `insecure: true` cannot be used together";
        problems.push(
            Diagnostic::new(title, ca.span, "plain HTTP has no certificates")
                .related(insecure, "plain HTTP is set here")
                .hint("remove one of them"),
        );
    }
    let port = if insecure.is_some() { HTTP_PORT } else { HTTPS_PORT };
    let address = given.server.take().map(|server| {
        let ServerText { host, port: given, .. } = server.value;
        ServerAddress { host, port: given.unwrap_or(port) }
    });
    let tls = match (given.ca.take(), insecure) {
        (_, Some(_)) => ServerTls::Off,
        (Some(ca), None) => ServerTls::Authority(ca.value.0),
        (None, None) => ServerTls::Default,
    };
    ApiServer {
        address,
        tls,
        root_path: given.root_path.take().map(|path| path.value.0),
        token_secret: given.token_secret.take().map(|name| name.value),
    }
}

/// Who acts through the fields of Applications sends nothing to the API server.
fn check_access(given: &ArgoCdDocument, insecure: Option<Span>, problems: &mut Diagnostics) {
    let access = given.access.as_ref();
    let Some(access) = access.filter(|access| access.value == ArgoCdAccess::Kubernetes) else {
        return;
    };
    let fields = [
        ("server", given.server.as_ref().map(|field| field.span)),
        ("ca", given.ca.as_ref().map(|field| field.span)),
        ("tokenSecret", given.token_secret.as_ref().map(|field| field.span)),
        ("rootPath", given.root_path.as_ref().map(|field| field.span)),
        ("insecure", insecure),
    ];
    for (name, span) in fields {
        let Some(span) = span else { continue };
        let title = format!("`{name}` has no effect with `access: kubernetes`");
        problems.push(
            Diagnostic::new(title, span, "only used to reach Argo CD's API server")
                .related(access.span, "runs do not use the API server")
                .hint(format!("remove `{name}`, or use `access: api`")),
        );
    }
}

fn check_scheme(server: &Spanned<ServerText>, insecure: Option<Span>, problems: &mut Diagnostics) {
    match (server.value.scheme, insecure) {
        (Some(Scheme::Http), None) => problems.push(
            Diagnostic::new(
                "`server` is a plain HTTP address without `insecure: true`",
                server.span,
                "the token would be sent without encryption",
            )
            .hint("use `https://`, or add `insecure: true` if that is what you want"),
        ),
        (Some(Scheme::Https), Some(insecure)) => problems.push(
            Diagnostic::new(
                "`server` is an HTTPS address, but `insecure: true` means plain HTTP",
                server.span,
                "HTTPS here",
            )
            .related(insecure, "plain HTTP here")
            .hint("remove `insecure` if TLS ends before Argo CD; use `http://` if there is no TLS"),
        ),
        (Some(Scheme::Http), Some(_)) | (Some(Scheme::Https), None) | (None, _) => {}
    }
}
