//! The health definitions that a plan counts on.

/// SHA-256 over the scripts of the crate `health`, whose tests hold it. A run that finds others
/// in Argo CD would wait for another Healthy than the one that was planned with.
pub const HEALTH_DEFINITIONS: &str =
    "sha256:6c43ed4ea00b8dfb151d56ba96ade279c0d177f05e07b7e574aff1df1be04347";
