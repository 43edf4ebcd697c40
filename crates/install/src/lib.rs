//! What a platform needs before its first run: Argo CD and its relatives, installed from pins, and
//! the platform's own part of an Argo CD.
//!
//! May touch: the cluster, registries and servers that the platform file names, and the folder of
//! mounted credentials.

pub mod bootstrap;
pub mod configure;
pub mod definitions;
pub mod https;
pub mod mounted;
pub mod registry;
pub mod webhooks;
