//! A small platform, and an Argo CD that answers by script.

pub(crate) mod argocd;

use tiphys_model::{NamespaceName, Platform};
use tiphys_spec::{Source, Sources};

/// `b` depends on `a`; runs act through the fields of Applications.
const PLATFORM: &str = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec:
  source: { repoURL: https://git.example/platform.git, path: root }
  argocd: { access: kubernetes, project: apps, rootProject: roots }
  stacks: [{ name: s, apps: [{ name: a }, B] }]
";

pub(crate) fn platform() -> Platform {
    platform_with("{ name: b, dependsOn: [a] }")
}

/// The same, whose Applications may also be in this namespace.
pub(crate) fn platform_in(namespace: &str) -> Platform {
    let mut platform = platform();
    platform.argocd.application_namespaces = vec![NamespaceName::parse(namespace).unwrap()];
    platform
}

/// The same with another `b`.
pub(crate) fn platform_with(b: &str) -> Platform {
    let source = Source::new("platform.yaml", PLATFORM.replace('B', b).into()).unwrap();
    tiphys_spec::platform(&Sources::new(vec![source])).unwrap()
}
