//! The scripts that Tiphys brings along, for kinds that Argo CD has no check for, or one that
//! says Healthy too soon.

use crate::{GroupKind, Script};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub kind: GroupKind,
    /// To be put into `argocd-cm`. Needs no open libs.
    pub script: Script,
}

macro_rules! definitions {
    ($($group:literal / $kind:literal),* $(,)?) => {
        [$((
            $group,
            $kind,
            include_str!(concat!("../definitions/", $group, "/", $kind, "/health.lua")),
        )),*]
    };
}

/// All of them, by group and kind.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    let all = definitions![
        "acid.zalan.do" / "postgresql",
        "argoproj.io" / "Application",
        "argoproj.io" / "EventSource",
        "argoproj.io" / "Sensor",
        "ceph.rook.io" / "CephCluster",
        "kafka.strimzi.io" / "Kafka",
        "kargo.akuity.io" / "Promotion",
        "kargo.akuity.io" / "Stage",
        "kargo.akuity.io" / "Warehouse",
        "temporal.io" / "TemporalCluster",
        "vault.banzaicloud.com" / "Vault",
    ];
    let definition = |(group, kind, text): (&str, &str, &str)| {
        let kind = GroupKind { group: group.to_owned(), kind: kind.to_owned() };
        let script =
            Script { name: format!("{kind} (Tiphys)"), text: text.into(), open_libs: false };
        Definition { kind, script }
    };
    all.into_iter().map(definition).collect()
}
