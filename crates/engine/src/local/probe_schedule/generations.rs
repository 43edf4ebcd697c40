//! Which resources have to be looked at to know that their controllers are up to date.

use tiphys_argocd::application::ResourceStatus;

/// Kinds that have no `status.observedGeneration`, or whose health check in Argo CD compares it
/// with the generation: what Argo CD says of their health says it all.
const JUDGED: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "LimitRange",
            "Namespace",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("batch", &["CronJob", "Job"]),
    ("networking.k8s.io", &["Ingress", "IngressClass", "NetworkPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["StorageClass"]),
];

/// Whether a controller may be behind without a word in the resource's health.
pub(super) fn may_lag(resource: &ResourceStatus) -> bool {
    let group = JUDGED.iter().find(|(group, _)| *group == resource.group);
    !group.is_some_and(|(_, kinds)| kinds.contains(&resource.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_controller_of_its_own_may_lag() {
        for (group, kind, expected) in [
            ("", "ConfigMap", false),
            ("apps", "Deployment", false),
            ("", "Deployment", true),
            ("policy", "PodDisruptionBudget", true),
            ("ceph.rook.io", "CephCluster", true),
            ("argoproj.io", "Application", true),
        ] {
            let resource = ResourceStatus {
                group: group.to_owned(),
                kind: kind.to_owned(),
                ..ResourceStatus::default()
            };
            assert_eq!(may_lag(&resource), expected, "{group}/{kind}");
        }
    }
}
