//! The root app: a Helm chart that makes one Application for each app.

use super::scalar::scalar;
use super::{Files, PlatformRepository};

const CHART: &str = "\
apiVersion: v2
name: root
description: The Applications of a platform, all at one revision
version: 1.0.0
";

/// Every app is at the commit that the root app was synced at: a later commit changes none of
/// them until a run syncs the root app, and two apps are never at two states of the repository.
const TEMPLATE: &str = r#"{{- $revision := required "set `revision` to $ARGOCD_APP_REVISION" .Values.revision }}
{{- range .Values.apps }}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {{ .name | quote }}
  namespace: {{ $.Values.argocdNamespace | quote }}
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: {{ $.Values.project | quote }}
  source:
    repoURL: {{ $.Values.repoURL | quote }}
    targetRevision: {{ $revision | quote }}
    path: {{ printf "apps/%s" .name | quote }}
  destination:
    server: https://kubernetes.default.svc
    namespace: {{ .namespace | quote }}
  syncPolicy:
    automated: { prune: true, selfHeal: true }
    syncOptions: [CreateNamespace=true]
{{- end }}
"#;

/// The server of the template if any app runs on another cluster.
const CLUSTER: &str = r#"{{ .cluster | default "https://kubernetes.default.svc" | quote }}"#;

pub(super) fn files(platform: &PlatformRepository) -> Files {
    let template = if platform.apps.iter().any(|app| app.cluster.is_some()) {
        TEMPLATE.replace("https://kubernetes.default.svc", CLUSTER)
    } else {
        TEMPLATE.to_owned()
    };
    let files = [
        ("root/Chart.yaml", CHART.to_owned()),
        ("root/values.yaml", values(platform)),
        ("root/templates/applications.yaml", template),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
}

/// The platform file inside of the chart, and what renders it: as a ConfigMap that is never applied.
pub(super) fn with_platform_file(name: &str, platform: &str) -> Files {
    let template = format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: platform-file
  labels: {{ tiphys.dev/platform-file: {} }}
  annotations: {{ argocd.argoproj.io/hook: Skip }}
data:
  platform.yaml: {{{{ .Files.Get \"platform.yaml\" | toJson }}}}
",
        scalar(name)
    );
    let files = [
        ("root/platform.yaml", platform.to_owned()),
        ("root/templates/platform-file.yaml", template),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
}

fn values(platform: &PlatformRepository) -> String {
    let mut text = format!(
        "\
# The root app sets it to the commit that it is synced at: $ARGOCD_APP_REVISION.
revision: \"\"
repoURL: {}
project: {}
argocdNamespace: argocd
apps:
",
        scalar(&platform.repo_url),
        scalar(&platform.project),
    );
    if platform.apps.is_empty() {
        text = text.replace("apps:\n", "apps: []\n");
    }
    for app in &platform.apps {
        let namespace = platform.namespace(&app.name);
        let (name, namespace) = (scalar(&app.name), scalar(&namespace));
        let cluster = app.cluster.as_ref();
        let cluster = cluster.map_or(String::new(), |at| format!(", cluster: {}", scalar(at)));
        text.push_str(&format!("  - {{ name: {name}, namespace: {namespace}{cluster} }}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{AppSource, Behaviour};

    #[test]
    fn values_list_each_app_with_its_namespace() {
        let mut platform = PlatformRepository::new("p", "https://git.example.org/p.git")
            .with(AppSource::new("vault", Behaviour::Empty));
        platform.namespace_prefix = "t-".to_owned();
        let text = values(&platform);
        assert!(text.contains("repoURL: \"https://git.example.org/p.git\"\nproject: p\n"));
        assert!(text.ends_with("apps:\n  - { name: vault, namespace: t-vault }\n"), "{text}");
        platform.apps[0].cluster = Some("https://edge.example.org".to_owned());
        let text = values(&platform);
        let edge = "namespace: t-vault, cluster: \"https://edge.example.org\" }\n";
        assert!(text.ends_with(edge), "{text}");
        platform.apps.clear();
        assert!(values(&platform).ends_with("apps: []\n"));
    }
}
