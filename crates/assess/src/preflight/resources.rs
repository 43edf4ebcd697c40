//! Processor, memory and pods: what there is, and what is asked for.

use serde::Serialize;
use tiphys_model::bootstrap::{Bootstrap, PrimitiveName};

/// What a node has, or what it gives away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    pub cpu_millis: u64,
    pub memory_bytes: u64,
    pub pods: u64,
}

pub(super) const fn request(cpu_millis: u64, memory_mebibytes: u64, pods: u64) -> Resources {
    Resources { cpu_millis, memory_bytes: memory_mebibytes << 20, pods }
}

/// What a primitive asks for as we install it. Argo CD: controller and repo server 250m and
/// 256 MiB each, server 125m and 128 MiB, Redis, Dex, ApplicationSet and notifications controllers
/// 50m and 64 MiB each. Argo Workflows: controller 250m and 256 MiB, server 125m and 128 MiB. Argo
/// Events: controller 50m and 64 MiB.
///
/// With high availability there are two of each, but for Dex and notifications; Redis is then three
/// servers with 150m and 192 MiB each, behind three proxies with 50m and 64 MiB each.
fn requested(primitive: PrimitiveName, high_availability: bool) -> Resources {
    match (primitive, high_availability) {
        (PrimitiveName::ArgoCd, false) => request(825, 896, 7),
        (PrimitiveName::ArgoCd, true) => request(2_050, 2_304, 16),
        (PrimitiveName::Workflows, false) => request(375, 384, 2),
        (PrimitiveName::Workflows, true) => request(750, 768, 4),
        (PrimitiveName::Events, false) => request(50, 64, 1),
        (PrimitiveName::Events, true) => request(100, 128, 2),
        // Only templates: pods come with runs.
        (PrimitiveName::Tiphys, _) => Resources::default(),
    }
}

/// What the primitives of a platform ask for together; none, if it installs none.
#[must_use]
pub fn needed(bootstrap: Option<&Bootstrap>) -> Option<Resources> {
    let Bootstrap { primitives, high_availability, .. } = bootstrap?;
    let all = primitives.iter().map(|one| requested(one.name, *high_availability));
    Some(all.fold(Resources::default(), Resources::plus))
}

impl Resources {
    pub(super) fn plus(self, other: Resources) -> Resources {
        Resources {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            pods: self.pods.saturating_add(other.pods),
        }
    }

    pub(super) fn covers(self, other: Resources) -> bool {
        self.cpu_millis >= other.cpu_millis
            && self.memory_bytes >= other.memory_bytes
            && self.pods >= other.pods
    }
}

/// `1500m CPU, 1536 MiB, 11 pods`
impl std::fmt::Display for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Resources { cpu_millis, memory_bytes, pods } = self;
        write!(f, "{cpu_millis}m CPU, {} MiB, {pods} pods", memory_bytes >> 20)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use tiphys_model::bootstrap::{Checksum, Endpoints, Installer, Manifests, Primitive};

    use super::*;

    fn bootstrap(high_availability: bool) -> Bootstrap {
        let primitive = |name: PrimitiveName| Primitive {
            name,
            version: "1".to_owned(),
            namespace: name.namespace().to_owned(),
            manifests: Manifests::Path("a.yaml".to_owned()),
            checksum: Checksum::parse(&"0".repeat(64)).unwrap(),
            patches: None,
        };
        Bootstrap {
            installer: Installer::Native,
            high_availability,
            timeout: Duration::ZERO,
            primitives: PrimitiveName::ALL.map(primitive).into(),
            images: Vec::new(),
            endpoints: Endpoints::default(),
        }
    }

    /// What all primitives ask for.
    pub(in crate::preflight) fn needed_by_all(high_availability: bool) -> Option<Resources> {
        needed(Some(&bootstrap(high_availability)))
    }

    #[test]
    fn what_the_primitives_ask_for_is_summed_up() {
        assert_eq!(needed(None), None);
        assert_eq!(needed_by_all(false), Some(request(1_250, 1_344, 10)));
        assert_eq!(needed_by_all(true), Some(request(2_900, 3_200, 22)));
    }
}
