//! The platform's part of Argo CD, as the file says it.

use tiphys_model::platform::{ArgoCdAccess, GroupKind};
use tiphys_model::{NamespaceName, SecretName};

use super::object::document;
use super::server::{Certificates, RootPath, ServerText};
use crate::decode::{Decode, Fields, List};
use crate::diagnostic::{Diagnostic, Diagnostics};
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

document! {
    #[derive(Default)]
    #[schemars(rename = "ArgoCD", extend("allOf" = schema::api_server_rules()))]
    ArgoCdDocument, "the Argo CD settings" {
        /// `argocd` unless given.
        #[schemars(schema_with = "schema::text")]
        namespace: Option<String> = optional("namespace"),
        /// Other namespaces where Applications of the platform may be; none unless given. Argo CD
        /// must watch them: see its setting `application.namespaces`.
        #[schemars(schema_with = "schema::namespaces")]
        application_namespaces: List<Spanned<NamespaceName>> = defaulted("applicationNamespaces"),
        /// The AppProject of the apps; `platform` unless given.
        #[schemars(schema_with = "schema::text")]
        project: Option<Spanned<String>> = optional("project"),
        /// The AppProjects of the apps, if there are several. An existing one, such as `default`,
        /// is left unchanged.
        #[schemars(schema_with = "schema::some_texts")]
        projects: Option<Spanned<List<String>>> = optional("projects"),
        /// The AppProject of the root app and other generators; `platform-root` unless given.
        #[schemars(schema_with = "schema::text")]
        root_project: Option<String> = optional("rootProject"),
        /// How a run acts on Argo CD: through its API, or, where it has none, through the fields of
        /// Applications.
        #[schemars(schema_with = "schema::access")]
        access: Option<Spanned<ArgoCdAccess>> = optional("access"),
        /// Argo CD's API server: `HOST`, `HOST:PORT` or `https://HOST:PORT`. Found in the cluster
        /// unless given.
        #[schemars(schema_with = "schema::server")]
        server: Option<Spanned<ServerText>> = optional("server"),
        /// PEM certificates to verify the API server with. Unless given, those that `configure`
        /// found, or with `server` the authorities that the machine trusts.
        #[schemars(schema_with = "schema::certificates")]
        ca: Option<Spanned<Certificates>> = optional("ca"),
        /// A Secret in Argo CD's namespace. Runs deploy with the token in its key `token`. Unless
        /// given, `tiphys-PLATFORM-deploy`, which `configure` creates.
        #[schemars(schema_with = "schema::app_name")]
        token_secret: Option<Spanned<SecretName>> = optional("tokenSecret"),
        /// The root path of the API server; the one that `configure` found unless given.
        #[schemars(schema_with = "schema::root_path")]
        root_path: Option<Spanned<RootPath>> = optional("rootPath"),
        /// Use plain HTTP to the API server; `false` unless given. Not needed for a server in the
        /// cluster: Tiphys detects whether it serves without TLS.
        #[schemars(with = "bool")]
        insecure: Option<Spanned<bool>> = optional("insecure"),
        /// Repositories that apps may come from, as globs; any unless given.
        #[schemars(schema_with = "schema::texts")]
        sources: Option<List<String>> = optional("sources"),
        /// Where apps may be deployed to; anywhere unless given.
        #[schemars(with = "Vec<DestinationDocument>")]
        destinations: Option<List<DestinationDocument>> = optional("destinations"),
        /// Cluster-scoped kinds that apps may have: `Kind` or `group/Kind`, as globs; any unless
        /// given.
        #[schemars(schema_with = "schema::kinds")]
        cluster_kinds: Option<List<GroupKind>> = optional("clusterKinds"),
    }
}

/// Where apps may be deployed to: exactly one of `server` and `name`, and a namespace. Each may
/// be a glob.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Destination", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["namespace"], "oneOf" = [
    { "required": ["server"] }, { "required": ["name"] },
])))]
pub(crate) struct DestinationDocument {
    /// The address of a cluster, as Argo CD knows it.
    #[cfg_attr(test, schemars(schema_with = "schema::text"))]
    pub(crate) server: Option<String>,
    /// The name of a cluster in Argo CD.
    #[cfg_attr(test, schemars(schema_with = "schema::text"))]
    pub(crate) name: Option<String>,
    #[cfg_attr(test, schemars(schema_with = "schema::text"))]
    pub(crate) namespace: String,
}

impl Decode for DestinationDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a destination", problems)?;
        let label = match ["server", "name"].map(|name| fields.has(name)) {
            [false, false] => Some("neither is given"),
            [true, true] => Some("both are given"),
            [true, false] | [false, true] => None,
        };
        if let Some(label) = label {
            let title = "a destination must have either `server` or `name`";
            let hint = "for this cluster, use `server: https://kubernetes.default.svc`";
            problems.push(Diagnostic::new(title, node.span(), label).hint(hint));
        }
        let server = fields.optional("server", problems);
        let name = fields.optional("name", problems);
        let namespace = fields.required("namespace", problems);
        fields.finish(problems);
        Some(DestinationDocument { server, name, namespace: namespace? })
    }
}
