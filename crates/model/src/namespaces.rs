//! The namespaces of runs. All platforms share them, and `configure` makes them.

/// Where runs inside the cluster live: their accounts, workflows and records. Not with Argo CD: who may
/// make a pod there can mount its Secrets.
pub const NAMESPACE: &str = "tiphys";
/// Where the chart is, with what serves all platforms. Who may make a workflow cannot use its account.
pub const SYSTEM_NAMESPACE: &str = "tiphys-system";
/// Where teardowns inside the cluster live. Who may make a workflow in a namespace can use every account
/// in it, so who may deploy would otherwise be able to remove.
pub const TEARDOWN_NAMESPACE: &str = "tiphys-teardown";
/// Where calls of Git servers arrive. Not with the runs: who may make a workflow could mount the secret that
/// the calls are signed with.
pub const EVENTS_NAMESPACE: &str = "tiphys-events";
/// All that `configure` makes.
pub const ALL: [&str; 3] = [NAMESPACE, TEARDOWN_NAMESPACE, EVENTS_NAMESPACE];
