//! What a test app does once it is synced, and the manifests that make it do so.

use std::time::Duration;

use super::scalar::scalar;
use crate::containers::PAUSE_IMAGE;

/// Changes with [`super::AppSource::generation`].
const GENERATION: &str = "lab.tiphys.dev/generation";

/// What an app does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// A Deployment that is Healthy after a time. A new generation takes it again.
    Healthy { after: Duration },
    /// A Deployment that stays Progressing for a day.
    NeverHealthy,
    /// A Deployment that is Degraded after a time: it exceeds its progress deadline.
    Degrades { after: Duration },
    /// The API server rejects it, so that the operation fails.
    FailsToSync,
    /// No YAML, so that there is nothing to compare with.
    InvalidManifest,
    /// Healthy at once, but its deletion waits for a finalizer that nobody removes.
    HoldsFinalizer,
    /// Healthy, but OutOfSync again after every sync: a controller writes over a field.
    StaysOutOfSync,
    /// Manifests as they are, without a generation: a CR, say, whose status the test writes.
    Resource { manifests: String },
    /// A ConfigMap: Healthy at once, and cheap enough for thousands.
    ConfigOnly,
    /// No resources at all.
    Empty,
}

impl Behaviour {
    /// The manifests of an app that does this.
    pub(super) fn manifests(&self, app: &str, generation: u32) -> String {
        let name = scalar(app);
        match self {
            Behaviour::Healthy { after } => Deployment {
                ready_after: *after,
                deadline: *after + Duration::from_secs(600),
                ..Deployment::default()
            }
            .manifest(&name, generation),
            Behaviour::NeverHealthy => Deployment {
                deadline: Duration::from_secs(24 * 3600),
                never_ready: true,
                ..Deployment::default()
            }
            .manifest(&name, generation),
            Behaviour::Degrades { after } => Deployment {
                // Kubernetes knows no deadline below one second.
                deadline: (*after).max(Duration::from_secs(1)),
                never_ready: true,
                ..Deployment::default()
            }
            .manifest(&name, generation),
            Behaviour::StaysOutOfSync => Deployment {
                // Kubernetes counts revisions itself, and puts its own number here.
                annotations: "{ deployment.kubernetes.io/revision: \"1000000\" }",
                ..Deployment::default()
            }
            .manifest(&name, generation),
            // A slash cannot stand in a key.
            Behaviour::FailsToSync => config_map(&name, generation, "", "not/a/key"),
            Behaviour::HoldsFinalizer => {
                config_map(&name, generation, "  finalizers: [lab.tiphys.dev/held]\n", "app")
            }
            Behaviour::ConfigOnly => config_map(&name, generation, "", "app"),
            // Argo CD passes over files that do not look like manifests at all.
            Behaviour::InvalidManifest => {
                config_map(&name, generation, "", "app") + "} this is no YAML\n"
            }
            Behaviour::Resource { manifests } => manifests.clone(),
            Behaviour::Empty => format!("# No resources; generation {generation}.\n"),
        }
    }
}

fn config_map(name: &str, generation: u32, metadata: &str, key: &str) -> String {
    format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  labels: {{ {GENERATION}: \"{generation}\" }}
{metadata}data:
  {key}: {name}
"
    )
}

/// A pod that does nothing, and how it gets ready.
#[derive(Default)]
struct Deployment {
    ready_after: Duration,
    deadline: Duration,
    never_ready: bool,
    annotations: &'static str,
}

impl Deployment {
    fn manifest(&self, name: &str, generation: u32) -> String {
        let annotations = match self.annotations {
            "" => String::new(),
            text => format!("  annotations: {text}\n"),
        };
        // Nobody listens there.
        let probe = if self.never_ready {
            "          readinessProbe: { tcpSocket: { port: 1 }, periodSeconds: 10 }\n"
        } else {
            ""
        };
        let deadline = match self.deadline.as_secs() {
            0 => String::new(),
            seconds => format!("  progressDeadlineSeconds: {seconds}\n"),
        };
        format!(
            "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
{annotations}spec:
  replicas: 1
  minReadySeconds: {ready}
{deadline}  selector:
    matchLabels: {{ app: {name} }}
  template:
    metadata:
      labels: {{ app: {name}, {GENERATION}: \"{generation}\" }}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 0
      containers:
        - name: app
          image: {PAUSE_IMAGE}
          imagePullPolicy: Never
          resources:
            requests: {{ cpu: 1m, memory: 4Mi }}
{probe}",
            ready = self.ready_after.as_secs(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_app_takes_its_time_and_has_room_for_it() {
        let text = Behaviour::Healthy { after: Duration::from_secs(18) }.manifests("vault", 3);
        assert!(text.contains("  minReadySeconds: 18\n  progressDeadlineSeconds: 618\n"));
        assert!(text.contains("labels: { app: vault, lab.tiphys.dev/generation: \"3\" }"));
        assert!(!text.contains("readinessProbe"));
    }

    #[test]
    fn what_never_gets_ready_differs_by_its_deadline() {
        let never = Behaviour::NeverHealthy.manifests("vault", 1);
        assert!(never.contains("readinessProbe") && never.contains("DeadlineSeconds: 86400\n"));
        let degrades = Behaviour::Degrades { after: Duration::ZERO }.manifests("vault", 1);
        assert!(degrades.contains("readinessProbe") && degrades.contains("DeadlineSeconds: 1\n"));
    }

    #[test]
    fn manifests_of_a_test_stay_as_they_are() {
        let manifests = "kind: CephCluster\n".to_owned();
        let behaviour = Behaviour::Resource { manifests: manifests.clone() };
        assert_eq!(behaviour.manifests("ceph", 7), manifests);
    }
}
