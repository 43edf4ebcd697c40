//! One module an action.

pub(crate) mod attach;
pub(crate) mod bootstrap;
pub(crate) mod cancel;
pub(crate) mod completion;
pub(crate) mod configure;
pub(crate) mod deploy;
pub(crate) mod executor;
pub(crate) mod health;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod rehearse;
pub(crate) mod rotate;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod teardown;
pub(crate) mod triggers;
pub(crate) mod validate;
pub(crate) mod version;
pub(crate) mod why;
