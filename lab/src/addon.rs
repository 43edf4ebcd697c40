//! What `lab up --with` can add to a cluster.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use tiphys_lab::{ArgoCdVersion, WorkflowsVersion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addon {
    ArgoCd(ArgoCdVersion),
    Events,
    Primitives,
    Registry,
    Workflows(WorkflowsVersion),
}

impl ValueEnum for Addon {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Addon::ArgoCd(ArgoCdVersion::V3_2),
            Addon::ArgoCd(ArgoCdVersion::V3_5),
            Addon::Events,
            Addon::Primitives,
            Addon::Registry,
            Addon::Workflows(WorkflowsVersion::V3_7),
            Addon::Workflows(WorkflowsVersion::V4_0),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Addon::ArgoCd(ArgoCdVersion::V3_2) => {
                PossibleValue::new("argocd").alias("argocd=3.2").help("Argo CD 3.2, running")
            }
            Addon::ArgoCd(ArgoCdVersion::V3_5) => {
                PossibleValue::new("argocd=3.5").help("Argo CD 3.5, running")
            }
            Addon::Events => {
                PossibleValue::new("events").help("Argo Events and a NATS server, running")
            }
            Addon::Primitives => PossibleValue::new("primitives").help(
                "Images and manifests of Argo CD, Argo Workflows and Argo Events; installs nothing",
            ),
            Addon::Registry => {
                PossibleValue::new("registry").help("An OCI registry beside the cluster")
            }
            Addon::Workflows(WorkflowsVersion::V3_7) => PossibleValue::new("workflows")
                .alias("workflows=3.7")
                .help("Argo Workflows 3.7, running"),
            Addon::Workflows(WorkflowsVersion::V4_0) => {
                PossibleValue::new("workflows=4.0").help("Argo Workflows 4.0, running")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_versions_is_named_with_or_without_one() {
        let read = |text: &str| Addon::from_str(text, false);
        assert_eq!(read("argocd"), Ok(Addon::ArgoCd(ArgoCdVersion::default())));
        for version in ArgoCdVersion::ALL {
            assert_eq!(read(&format!("argocd={version}")), Ok(Addon::ArgoCd(version)));
        }
        assert!(read("argocd=3.4").is_err());
        assert_eq!(read("workflows"), Ok(Addon::Workflows(WorkflowsVersion::default())));
        for version in WorkflowsVersion::ALL {
            assert_eq!(read(&format!("workflows={version}")), Ok(Addon::Workflows(version)));
        }
        let versions = ArgoCdVersion::ALL.len() + WorkflowsVersion::ALL.len();
        assert_eq!(Addon::value_variants().len(), versions + 3);
    }
}
