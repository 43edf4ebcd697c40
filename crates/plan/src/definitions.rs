//! The health definitions that a plan counts on.

/// SHA-256 over the scripts of the crate `health`, whose tests hold it. A run that finds others
/// in Argo CD would wait for another Healthy than the one that was planned with.
pub const HEALTH_DEFINITIONS: &str =
    "sha256:56c86cc8f6e3874ea0931fadc06079c5a974636d3850028a05a3f89f93788a00";
