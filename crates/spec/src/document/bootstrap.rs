//! What the platform stands on, as the file says it.

use std::time::Duration;

use schemars::JsonSchema;
use tiphys_model::bootstrap::{Checksum, Installer};

use crate::decode::{Decode, Fields, List};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::schema;
use crate::source::Spanned;
use crate::yaml::Node;

/// What the platform stands on: pinned, and installed by `tiphys bootstrap`.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Bootstrap", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["argocd"]))]
pub(crate) struct BootstrapDocument {
    #[schemars(schema_with = "schema::installer")]
    pub(crate) installer: Option<Installer>,
    /// Several replicas of what can have them; `false` unless given.
    #[schemars(with = "bool")]
    pub(crate) high_availability: Option<bool>,
    /// How long each primitive may take to be ready; 10m unless given.
    #[schemars(schema_with = "schema::duration")]
    pub(crate) timeout: Option<Spanned<Duration>>,
    pub(crate) argocd: PrimitiveDocument,
    #[schemars(with = "PrimitiveDocument")]
    pub(crate) workflows: Option<PrimitiveDocument>,
    #[schemars(with = "PrimitiveDocument")]
    pub(crate) events: Option<PrimitiveDocument>,
    /// Where images come from instead; the first that fits counts.
    #[schemars(with = "Vec<MirrorDocument>")]
    pub(crate) images: List<MirrorDocument>,
    /// What must be reachable, beside the Git repository of `spec.source`.
    #[schemars(with = "EndpointsDocument")]
    pub(crate) endpoints: Option<EndpointsDocument>,
}

/// One program that the platform stands on.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Primitive", deny_unknown_fields)]
#[schemars(extend("required" = ["version", "manifests"]))]
pub(crate) struct PrimitiveDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) version: String,
    /// `argo` for Argo Workflows and `argo-events` for Argo Events unless given. That of Argo CD
    /// is `spec.argocd.namespace`.
    #[schemars(schema_with = "schema::text")]
    pub(crate) namespace: Option<Spanned<String>>,
    pub(crate) manifests: ManifestsDocument,
    /// A file of partial objects that are laid over the manifests, seen from this file.
    #[schemars(schema_with = "schema::text")]
    pub(crate) patches: Option<String>,
}

/// Where the manifests are: exactly one of `path`, `url`, `oci` and `chart`.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Manifests", deny_unknown_fields)]
#[schemars(extend("required" = ["sha256"], "oneOf" = [
    { "required": ["path"] }, { "required": ["url"] }, { "required": ["oci"] },
    { "required": ["chart"] },
]))]
pub(crate) struct ManifestsDocument {
    /// What they must be, byte for byte; for a chart, what `helm template` makes of it.
    #[schemars(schema_with = "schema::checksum")]
    pub(crate) sha256: Checksum,
    /// A file, seen from this file.
    #[schemars(schema_with = "schema::text")]
    pub(crate) path: Option<String>,
    #[schemars(schema_with = "schema::https")]
    pub(crate) url: Option<Https>,
    /// An artifact of one layer: `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`.
    #[schemars(schema_with = "schema::text")]
    pub(crate) oci: Option<String>,
    #[schemars(with = "ChartDocument")]
    pub(crate) chart: Option<ChartDocument>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Chart", deny_unknown_fields)]
#[schemars(extend("required" = ["repository", "name", "version"]))]
pub(crate) struct ChartDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) repository: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) name: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) version: String,
    /// A file of values, seen from this file.
    #[schemars(schema_with = "schema::text")]
    pub(crate) values: Option<String>,
}

/// Images whose name begins with `from` are had under `to` instead.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Mirror", deny_unknown_fields)]
pub(crate) struct MirrorDocument {
    #[schemars(schema_with = "schema::text")]
    pub(crate) from: String,
    #[schemars(schema_with = "schema::text")]
    pub(crate) to: String,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "Endpoints", deny_unknown_fields)]
#[schemars(extend("required" = []))]
pub(crate) struct EndpointsDocument {
    /// Container registries: `HOST` or `HOST:PORT`.
    #[schemars(schema_with = "schema::texts")]
    pub(crate) registries: List<String>,
    /// Helm repositories, by URL.
    #[schemars(schema_with = "schema::https_list")]
    pub(crate) charts: List<Https>,
}

/// An address that begins with `https://`.
#[derive(Debug)]
pub(crate) struct Https(pub(crate) String);

impl Decode for BootstrapDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "the bootstrap settings", problems)?;
        let installer = fields.optional("installer", problems);
        let high_availability = fields.optional("highAvailability", problems);
        let timeout = fields.optional("timeout", problems);
        let argocd = fields.required("argocd", problems);
        let workflows = fields.optional("workflows", problems);
        let events = fields.optional("events", problems);
        let images = fields.optional("images", problems).unwrap_or_default();
        let endpoints = fields.optional("endpoints", problems);
        fields.finish(problems);
        Some(BootstrapDocument {
            installer,
            high_availability,
            timeout,
            argocd: argocd?,
            workflows,
            events,
            images,
            endpoints,
        })
    }
}

impl Decode for PrimitiveDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a primitive", problems)?;
        let version = fields.required("version", problems);
        let namespace = fields.optional("namespace", problems);
        let manifests = fields.required("manifests", problems);
        let patches = fields.optional("patches", problems);
        fields.finish(problems);
        Some(PrimitiveDocument { version: version?, namespace, manifests: manifests?, patches })
    }
}

impl Decode for ManifestsDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        const PLACES: [&str; 4] = ["path", "url", "oci", "chart"];
        let mut fields = Fields::open(node, "manifests", problems)?;
        let given = PLACES.into_iter().filter(|name| fields.has(name)).count();
        if given != 1 {
            let title = "manifests are at one of `path`, `url`, `oci` and `chart`";
            let label = if given == 0 { "none of them is here" } else { "more than one is here" };
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

impl Decode for ChartDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a chart", problems)?;
        let repository = fields.required("repository", problems);
        let name = fields.required("name", problems);
        let version = fields.required("version", problems);
        let values = fields.optional("values", problems);
        fields.finish(problems);
        Some(ChartDocument { repository: repository?, name: name?, version: version?, values })
    }
}

impl Decode for MirrorDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "a mirror", problems)?;
        let from = fields.required("from", problems);
        let to = fields.required("to", problems);
        fields.finish(problems);
        Some(MirrorDocument { from: from?, to: to? })
    }
}

impl Decode for EndpointsDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let mut fields = Fields::open(node, "endpoints", problems)?;
        let registries = fields.optional("registries", problems).unwrap_or_default();
        let charts = fields.optional("charts", problems).unwrap_or_default();
        fields.finish(problems);
        Some(EndpointsDocument { registries, charts })
    }
}

impl Decode for Checksum {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let checksum = Checksum::parse(&text);
        if checksum.is_none() {
            let title = format!("{} is no SHA-256", quoted(&text));
            problems.push(
                Diagnostic::new(title, node.span(), "not 64 hexadecimal digits in small letters")
                    .hint("`sha256sum FILE` says it"),
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
        let title = format!("{} is no HTTPS address", quoted(&text));
        let label = "does not begin with `https://` and a host";
        problems.push(Diagnostic::new(title, node.span(), label));
        None
    }
}
