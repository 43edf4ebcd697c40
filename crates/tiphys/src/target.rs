//! Which cluster is about to be changed: said before anything else is.

use tiphys_cluster::Access;

use crate::failure::Failure;
use crate::{output, runtime};

pub(crate) fn tell(access: &Access) -> Result<(), Failure> {
    let target = runtime::block_on(async { Ok(access.target().await?) })?;
    output::note(&format!("cluster {target}"));
    Ok(())
}
