//! What the platform stands on, as the file says it.

use std::time::Duration;

use tiphys_model::bootstrap::{Checksum, Installer};

use super::object::document;
use crate::decode::{Decode, Fields, List};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

document! {
    /// The primitives of the platform: pinned, and installed by `tiphys bootstrap`.
    #[schemars(rename = "Bootstrap")]
    BootstrapDocument, "the bootstrap settings" {
        #[schemars(schema_with = "schema::installer")]
        installer: Option<Installer> = optional("installer"),
        /// Run several replicas where possible; `false` unless given.
        #[schemars(with = "bool")]
        high_availability: Option<bool> = optional("highAvailability"),
        /// How long each primitive may take to be ready; 10m unless given.
        #[schemars(schema_with = "schema::duration")]
        timeout: Option<Spanned<Duration>> = optional("timeout"),
        argocd: PrimitiveDocument = required("argocd"),
        #[schemars(with = "PrimitiveDocument")]
        workflows: Option<PrimitiveDocument> = optional("workflows"),
        #[schemars(with = "PrimitiveDocument")]
        events: Option<PrimitiveDocument> = optional("events"),
        /// The chart with the templates for runs on Argo Workflows.
        #[schemars(with = "PrimitiveDocument")]
        tiphys: Option<PrimitiveDocument> = optional("tiphys"),
        /// Where to pull images from instead; the first match is used.
        #[schemars(with = "Vec<MirrorDocument>")]
        images: List<MirrorDocument> = defaulted("images"),
        /// What must be reachable, besides the Git repository of `spec.source`.
        #[schemars(with = "EndpointsDocument")]
        endpoints: Option<EndpointsDocument> = optional("endpoints"),
    }
}

document! {
    /// One program that `tiphys bootstrap` installs.
    #[schemars(rename = "Primitive")]
    PrimitiveDocument, "a primitive" {
        #[schemars(schema_with = "schema::text")]
        version: String = required("version"),
        /// `argo` for Argo Workflows, `argo-events` for Argo Events and `tiphys-system` for the
        /// Tiphys chart unless given. For Argo CD, it is `spec.argocd.namespace`.
        #[schemars(schema_with = "schema::text")]
        namespace: Option<Spanned<String>> = optional("namespace"),
        manifests: ManifestsDocument = required("manifests"),
        /// A file of partial objects that are merged into the manifests; relative to this file.
        #[schemars(schema_with = "schema::text")]
        patches: Option<String> = optional("patches"),
    }
}

/// Where the manifests are: exactly one of `path`, `url`, `oci` and `chart`.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Manifests", deny_unknown_fields))]
#[cfg_attr(test, schemars(extend("required" = ["sha256"], "oneOf" = [
    { "required": ["path"] }, { "required": ["url"] }, { "required": ["oci"] },
    { "required": ["chart"] },
])))]
pub(crate) struct ManifestsDocument {
    /// The SHA-256 of the manifests; for a chart, of the output of `helm template`.
    #[cfg_attr(test, schemars(schema_with = "schema::checksum"))]
    pub(crate) sha256: Checksum,
    /// A file, relative to this file.
    #[cfg_attr(test, schemars(schema_with = "schema::text"))]
    pub(crate) path: Option<String>,
    #[cfg_attr(test, schemars(schema_with = "schema::https"))]
    pub(crate) url: Option<Https>,
    /// An artifact of one layer: `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`.
    #[cfg_attr(test, schemars(schema_with = "schema::text"))]
    pub(crate) oci: Option<String>,
    #[cfg_attr(test, schemars(with = "ChartDocument"))]
    pub(crate) chart: Option<ChartDocument>,
}

document! {
    #[schemars(rename = "Chart")]
    ChartDocument, "a chart" {
        #[schemars(schema_with = "schema::text")]
        repository: String = required("repository"),
        #[schemars(schema_with = "schema::text")]
        name: String = required("name"),
        #[schemars(schema_with = "schema::text")]
        version: String = required("version"),
        /// A values file, relative to this file.
        #[schemars(schema_with = "schema::text")]
        values: Option<String> = optional("values"),
    }
}

document! {
    /// Images whose name begins with `from` are pulled from `to` instead.
    #[schemars(rename = "Mirror")]
    MirrorDocument, "a mirror" {
        #[schemars(schema_with = "schema::text")]
        from: String = required("from"),
        #[schemars(schema_with = "schema::text")]
        to: String = required("to"),
    }
}

document! {
    #[schemars(rename = "Endpoints")]
    EndpointsDocument, "endpoints" {
        /// Container registries: `HOST` or `HOST:PORT`.
        #[schemars(schema_with = "schema::texts")]
        registries: List<String> = defaulted("registries"),
        /// Helm repositories, by URL.
        #[schemars(schema_with = "schema::https_list")]
        charts: List<Https> = defaulted("charts"),
    }
}

/// An address that begins with `https://`.
#[derive(Debug)]
pub(crate) struct Https(pub(crate) String);

impl Decode for ManifestsDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        const PLACES: [&str; 4] = ["path", "url", "oci", "chart"];
        let mut fields = Fields::open(node, "manifests", problems)?;
        let given = PLACES.into_iter().filter(|name| fields.has(name)).count();
        if given != 1 {
            let title = "manifests must have exactly one of `path`, `url`, `oci` and `chart`";
            let label = if given == 0 { "none is given" } else { "more than one is given" };
            problems.push(Diagnostic::new(title, node.span(), label));
        }
        let sha256 = fields.required("sha256", problems);
        let path = fields.optional("path", problems);
        let url = fields.optional("url", problems);
        let oci = fields.optional("oci", problems);
        let chart = fields.optional("chart", problems);
        fields.finish(problems);
        Some(ManifestsDocument { sha256: sha256?, path, url, oci, chart })
    }
}

impl Decode for Checksum {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let checksum = Checksum::parse(&text);
        if checksum.is_none() {
            let title = format!("{} is not a SHA-256 checksum", quoted(&text));
            problems.push(
                Diagnostic::new(title, node.span(), "must be 64 lower-case hexadecimal digits")
                    .hint("run `sha256sum FILE` to compute it"),
            );
        }
        checksum
    }
}

impl Decode for Https {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let rest = text.strip_prefix("https://");
        if rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
            return Some(Https(text));
        }
        let title = format!("{} is not an HTTPS URL", quoted(&text));
        let label = "must start with `https://` and a host";
        problems.push(Diagnostic::new(title, node.span(), label));
        None
    }
}
