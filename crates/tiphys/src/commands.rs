//! One module an action.

pub(crate) mod completion;
pub(crate) mod configure;
pub(crate) mod deploy;
pub(crate) mod plan;
pub(crate) mod rehearse;
pub(crate) mod schema;
pub(crate) mod version;
