//! Platform files and Application manifests into the model.
//!
//! ```text
//! bytes ──▶ Sources ──▶ yaml::Tree ──▶ document ──▶ resolve ──▶ model::Platform
//!           (text)      (spans,        (shape,       (names,
//!                        budgets)       schema)       edges, cycles)
//! ```
//!
//! Each stage reports every problem it finds, with its place, and the next one goes on with
//! what could be read. This crate reads no files itself: whoever has the bytes hands them in.

mod applications;
mod decode;
mod diagnostic;
mod document;
mod nearest;
mod resolve;
#[cfg(test)]
mod schema;
mod source;
mod written;
mod yaml;

pub use applications::{
    PassedOver, SyncWaves, passed_over, platform_file_from_applications, platform_from_applications,
};
pub use diagnostic::{Diagnostic, Diagnostics, Label};
pub use document::API_VERSION;
pub use nearest::nearest;
pub use source::{NotText, Source, SourceIx, Sources, Span};
pub use written::yaml_text;

use tiphys_model::platform::ArgoCd;
use tiphys_model::{Graph, Platform, PlatformName};

/// The JSON Schema of platform files.
pub const PLATFORM_SCHEMA: &str = include_str!("../../../schema/platform.v1alpha1.json");

/// The largest platform, in bytes over all of its files.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A platform of which nothing is known but its name and where Argo CD is: the rest is what a file
/// would say that says nothing.
#[must_use]
pub fn named(name: PlatformName, namespace: String) -> Platform {
    let nothing = document::SpecDocument::default();
    let mut head = resolve::head(name, nothing, &mut Diagnostics::default());
    head.argocd = ArgoCd { namespace, has_root_app: true, ..head.argocd };
    head.platform(Vec::new(), Graph::new(0, &[]))
}

/// Reads the files of one platform: one file, or the files of a directory in byte order.
pub fn platform(sources: &Sources) -> Result<Platform, Diagnostics> {
    let mut problems = Diagnostics::default();
    let files = document::platform_files(sources, &mut problems);
    let platform = resolve::platform(files, sources.is_directory(), &mut problems);
    problems.into_result(platform)
}
