//! Waiting for a cluster: one thread is enough, the work is elsewhere.

use std::future::Future;

use tiphys_cluster::{ClusterError, Kind};
use tokio::runtime::Builder;

use crate::failure::Failure;

pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        let what = "the cluster cannot be waited for";
        Failure::Cluster(ClusterError::new(Kind::Failed, what, error.to_string()))
    })?;
    runtime.block_on(future).map_err(Failure::Cluster)
}
