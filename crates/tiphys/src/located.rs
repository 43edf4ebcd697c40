//! Which platform an action is about, and what the cluster knows of it.

use std::fs;
use std::path::Path;

use tiphys_cluster::Access;
use tiphys_model::{Exit, Explain, Explanation, Platform, PlatformName};
use tiphys_state::{DeployedGraph, GraphStore};

use crate::args::DeployedArgs;
use crate::failure::Failure;
use crate::{input, runtime};

/// A platform, and the graph of its last deployment, if that is where it was read from.
pub(crate) struct Located {
    pub(crate) platform: Platform,
    pub(crate) graph: Option<DeployedGraph>,
}

/// Which description of a platform counts, if nobody has named a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// `./platform.yaml`, if it is there.
    File,
    /// The graph in the cluster.
    Cluster,
}

/// The platform as it should be looked at: as the given file says, or as is preferred.
pub(crate) fn described(
    args: &DeployedArgs,
    access: &Access,
    prefer: Prefer,
) -> Result<Located, Failure> {
    let default = default_file().filter(|_| prefer == Prefer::File && args.name.is_none());
    if let Some(file) = args.file.as_deref().or(default) {
        return Ok(Located { platform: input::platform(Some(file))?, graph: None });
    }
    let located = deployed(args, access)?;
    located.ok_or_else(|| {
        let (namespace, name) = (args.namespace.clone(), args.name.clone());
        LocateError::NotDeployed { namespace, name }.into()
    })
}

/// Nobody can tell which platform is meant.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
enum LocateError {
    NotDeployed {
        namespace: String,
        /// Any, if none was named.
        name: Option<PlatformName>,
    },
    Several {
        namespace: String,
        names: Vec<String>,
    },
}

impl Explain for LocateError {
    fn explain(&self) -> Explanation {
        match self {
            LocateError::NotDeployed { namespace, name } => {
                let (what, why) = match name {
                    Some(name) => (
                        format!("platform `{name}` not found in the namespace `{namespace}`"),
                        "the cluster has no record of a deployment with that name",
                    ),
                    None => (
                        format!("no platform found in the namespace `{namespace}`"),
                        "the cluster has no record of a deployment, and ./platform.yaml does not exist",
                    ),
                };
                Explanation::new(Exit::NotFound, what, why)
                    .hint("pass the platform file with `-f`, or Argo CD's namespace with `-n`")
            }
            LocateError::Several { namespace, names } => Explanation::new(
                Exit::Configuration,
                format!("several platforms found in the namespace `{namespace}`"),
                names.join(", "),
            )
            .hint("choose one with `--platform NAME`, or pass its file with `-f`"),
        }
    }
}

fn default_file() -> Option<&'static Path> {
    let default = Path::new(input::DEFAULT);
    fs::symlink_metadata(default).is_ok().then_some(default)
}

/// The platform as it was deployed. Without a graph in the cluster, it is that of the file;
/// without either, there is none.
pub(crate) fn deployed(args: &DeployedArgs, access: &Access) -> Result<Option<Located>, Failure> {
    let default = default_file().filter(|_| args.name.is_none());
    let file = args.file.as_deref().or(default);
    let file = file.map(|file| input::platform(Some(file))).transpose()?;
    let namespace = file.as_ref().map_or(&args.namespace, |file| &file.argocd.namespace);
    let found = runtime::block_on(async {
        let client = access.client().await?;
        let name = match file.as_ref().map(|file| &file.name).or(args.name.as_ref()) {
            Some(name) => Some(name.clone()),
            None => only(GraphStore::platforms(&client, namespace).await?, namespace)?,
        };
        let Some(name) = name else { return Ok(None) };
        let graph = GraphStore::new(&client, namespace, &name).read().await?;
        let platform = graph.as_ref().map(|graph| graph.platform(&name, namespace)).transpose()?;
        Ok(Some((platform, graph)))
    })?;
    Ok(match (found, file) {
        (Some((Some(platform), graph)), file) => {
            // A file was compared already, and a graph that an older Tiphys wrote does not know.
            if file.is_none() || platform.environment.is_some() {
                input::check_environment(&platform)?;
            }
            Some(Located { platform, graph })
        }
        (_, Some(platform)) => Some(Located { platform, graph: None }),
        (_, None) => None,
    })
}

/// One of several is not guessed.
fn only<T: ToString>(
    found: impl IntoIterator<Item = T>,
    namespace: &str,
) -> Result<Option<T>, LocateError> {
    let mut found: Vec<T> = found.into_iter().collect();
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let names = found.iter().map(ToString::to_string).collect();
    Err(LocateError::Several { namespace: namespace.to_owned(), names })
}
