//! What the platform stands on, with the defaults filled in.

use std::time::Duration;

use tiphys_model::bootstrap::{
    Bootstrap, Chart, Endpoints, Manifests, Mirror, Primitive, PrimitiveName,
};
use tiphys_model::namespaces;

use super::positive;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::bootstrap::{BootstrapDocument, ManifestsDocument, PrimitiveDocument};
use crate::source::Spanned;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Argo CD lives where `spec.argocd` says, and nowhere else.
pub(super) fn resolve(
    given: BootstrapDocument,
    argocd_namespace: &str,
    problems: &mut Diagnostics,
) -> Option<Bootstrap> {
    let mut primitives = Vec::new();
    let documents = [Some(given.argocd), given.workflows, given.events, given.tiphys];
    for (name, document) in PrimitiveName::ALL.into_iter().zip(documents) {
        let Some(document) = document else { continue };
        let default = match name {
            PrimitiveName::ArgoCd => {
                check_namespace(document.namespace.as_ref(), argocd_namespace, problems);
                argocd_namespace
            }
            PrimitiveName::Workflows | PrimitiveName::Events => name.namespace(),
            PrimitiveName::Tiphys => {
                check_not_of_runs(document.namespace.as_ref(), problems);
                name.namespace()
            }
        };
        primitives.push(primitive(name, document, default)?);
    }
    let endpoints = given.endpoints.map_or_else(Endpoints::default, |endpoints| Endpoints {
        registries: endpoints.registries.items,
        charts: endpoints.charts.items.into_iter().map(|https| https.0).collect(),
    });
    let images = given.images.items.into_iter();
    Some(Bootstrap {
        installer: given.installer.unwrap_or_default(),
        high_availability: given.high_availability.unwrap_or(false),
        timeout: given.timeout.map_or(DEFAULT_TIMEOUT, |timeout| positive(&timeout, problems)),
        primitives,
        images: images.map(|mirror| Mirror { from: mirror.from, to: mirror.to }).collect(),
        endpoints,
    })
}

fn check_namespace(given: Option<&Spanned<String>>, expected: &str, problems: &mut Diagnostics) {
    if let Some(given) = given.filter(|given| given.value != expected) {
        let name = quoted(&given.value);
        let title = format!("conflicting namespaces for Argo CD: {name} and `{expected}`");
        let label = "not the same as `spec.argocd.namespace`";
        problems.push(
            Diagnostic::new(title, given.span, label)
                .hint("remove it: `spec.argocd.namespace` applies to the whole platform"),
        );
    }
}

/// Namespaces of runs come and go with the platforms that need them.
fn check_not_of_runs(given: Option<&Spanned<String>>, problems: &mut Diagnostics) {
    if let Some(given) = given.filter(|given| namespaces::ALL.contains(&given.value.as_str())) {
        let title = format!("the namespace {} is reserved for runs", quoted(&given.value));
        let default = PrimitiveName::Tiphys.namespace();
        problems.push(
            Diagnostic::new(title, given.span, "the chart needs a namespace of its own")
                .hint(format!("remove it to use `{default}`")),
        );
    }
}

/// `None` where the place of the manifests could not be read, which has been told.
fn primitive(
    name: PrimitiveName,
    given: PrimitiveDocument,
    default_namespace: &str,
) -> Option<Primitive> {
    let namespace = given.namespace.map_or_else(|| default_namespace.to_owned(), |n| n.value);
    let ManifestsDocument { sha256, path, url, oci, chart } = given.manifests;
    let chart = chart.map(|chart| Chart {
        repository: chart.repository,
        name: chart.name,
        version: chart.version,
        values: chart.values,
    });
    let manifests = path
        .map(Manifests::Path)
        .or(url.map(|url| Manifests::Url(url.0)))
        .or(oci.map(Manifests::Oci))
        .or(chart.map(Manifests::Chart))?;
    Some(Primitive {
        name,
        version: given.version,
        namespace,
        manifests,
        checksum: sha256,
        patches: given.patches,
    })
}
