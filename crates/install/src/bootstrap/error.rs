//! Why primitives are not installed.

use tiphys_cluster::RequestError;
use tiphys_model::bootstrap::{Primitive, PrimitiveName};
use tiphys_model::{Exit, Explain, Explanation};

use super::apply::ApplyError;
use super::fetch::FetchError;
use super::pins::DowngradeError;
use super::ready::ReadyError;
use super::render::RenderError;

/// A primitive that cannot be fetched or rendered.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum PrepareError {
    Fetch(#[from] FetchError),
    Render { primitive: Box<Primitive>, source: RenderError },
}

impl Explain for PrepareError {
    fn explain(&self) -> Explanation {
        match self {
            PrepareError::Fetch(error) => error.explain(),
            PrepareError::Render { primitive, source } => Explanation::new(
                Exit::Configuration,
                format!("cannot use the manifests of {}", primitive.name.title()),
                source.to_string(),
            )
            .hint(format!("check {} and its patches", primitive.manifests)),
        }
    }
}

/// A primitive that must not be installed over what is there.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CheckError {
    /// It is somebody else's.
    Foreign {
        primitive: PrimitiveName,
        seen: Vec<String>,
    },
    Downgrade(#[from] DowngradeError),
    Request(#[from] RequestError),
}

impl Explain for CheckError {
    fn explain(&self) -> Explanation {
        match self {
            CheckError::Foreign { primitive, seen } => {
                let verb = if seen.len() == 1 { "exists" } else { "exist" };
                Explanation::new(
                    Exit::Configuration,
                    format!("`tiphys bootstrap` did not install {}", primitive.title()),
                    format!("{} already {verb}", seen.join(" and ")),
                )
                .hint(match primitive {
                    PrimitiveName::ArgoCd => {
                        "remove `spec.bootstrap` to use it as it is, uninstall it, or take it over \
                         with `--adopt`"
                    }
                    PrimitiveName::Workflows | PrimitiveName::Events | PrimitiveName::Tiphys => {
                        "remove it from `spec.bootstrap`, uninstall it, or take it over with \
                         `--adopt`"
                    }
                })
            }
            CheckError::Downgrade(error) => error.explain(),
            CheckError::Request(error) => error.explain(),
        }
    }
}

/// An installation that has not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum InstallError {
    Apply(#[from] ApplyError),
    Ready(#[from] ReadyError),
}

impl Explain for InstallError {
    fn explain(&self) -> Explanation {
        match self {
            InstallError::Apply(error) => error.explain(),
            InstallError::Ready(error) => error.explain(),
        }
    }
}
