//! `tiphys deploy --prune`: apps that were deployed and have left the platform file.

use std::collections::BTreeSet;
use std::sync::Arc;

use tiphys_cluster::Access;
use tiphys_engine::{Extent, TeardownOptions};
use tiphys_model::{AppName, Exit, Platform};
use tiphys_state::{DeployedGraph, GraphStore};

use crate::args::RunFormat;
use crate::commands::teardown::{Removal, remove};
use crate::failure::Failure;
use crate::report_files::RunFiles;
use crate::{output, runtime};

pub(super) fn run(access: Access, platform: &Platform, format: RunFormat) -> Result<Exit, Failure> {
    let namespace = &platform.argocd.namespace;
    let graph = runtime::block_on(async {
        let client = access.client().await?;
        Ok(GraphStore::new(&client, namespace, &platform.name).read().await?)
    })?;
    let Some(graph) = graph else { return Ok(Exit::Done) };
    let left = left(&graph, platform);
    let deployed = graph.platform(&platform.name, namespace)?;
    let Some(plan) = tiphys_plan::plan_removal(&deployed, &left) else {
        return Ok(Exit::Done);
    };
    let names: Vec<&str> = left.iter().map(AppName::as_str).collect();
    output::note(&format!(
        "removing apps that are no longer in the platform file: {}",
        names.join(", ")
    ));
    let removal = Removal {
        // The file may have been changed since the graph was made; the cluster is what counts.
        platform: deployed,
        graph: Some(graph),
        plan: Arc::new(plan),
        extent: Extent::Pruned,
        options: TeardownOptions::default(),
        yes: false,
    };
    // The deployment has its own files, and this is another run.
    let (exit, _) = remove(access, removal, format, RunFiles::default(), "deploy --prune")?;
    Ok(exit)
}

/// What was deployed and is not in the file any more.
fn left(graph: &DeployedGraph, platform: &Platform) -> BTreeSet<AppName> {
    let names = graph.apps.keys().filter_map(|name| AppName::parse(name).ok());
    names.filter(|name| platform.apps.iter().all(|app| app.name != *name)).collect()
}
