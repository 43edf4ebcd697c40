//! Waiting for a cluster: one thread is enough, the work is elsewhere.

use std::future::Future;

use tokio::runtime::Builder;

use crate::failure::Failure;

pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(future)
}
