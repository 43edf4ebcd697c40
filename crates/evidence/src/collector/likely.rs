//! The common troubles by name: what the evidence most likely means, and what to do then.

use tiphys_run::Evidence;

/// Texts that tell a trouble, in lower case, and what it is.
struct Trouble {
    signs: &'static [&'static str],
    meaning: &'static str,
}

/// The more telling come first: a pod that cannot pull its image also fails to get ready.
const TROUBLES: [Trouble; 16] = [
    Trouble {
        signs: &["argo cd still shows version"],
        meaning: "Argo CD is behind the cluster: check that its application controller is running, \
                  and restart it if it is",
    },
    Trouble {
        signs: &[
            "imagepullbackoff",
            "errimagepull",
            "failed to pull image",
            "invalidimagename",
            "errimageneverpull",
        ],
        meaning: "an image cannot be pulled: check its name and tag, and the registry's credentials",
    },
    Trouble {
        signs: &["exceeded quota"],
        meaning: "a quota is used up: raise the ResourceQuota, or lower the requests of the app",
    },
    Trouble {
        signs: &["failed calling webhook"],
        meaning: "an admission webhook does not answer: check that the app that serves it is up, \
                  or deploy that app before this one",
    },
    Trouble {
        signs: &[
            "no matches for kind",
            "could not find the requested resource",
            "crd is installed on",
            "ensure crds are installed",
        ],
        meaning: "a CRD is missing: add a dependency on the app that installs it",
    },
    Trouble {
        // By its label, by its API, by `vault status`.
        signs: &["vault is sealed", "\"sealed\":true", "sealed true"],
        meaning: "Vault is sealed: unseal it",
    },
    Trouble {
        signs: &[
            "unbound immediate persistentvolumeclaims",
            "persistentvolumeclaim is not bound",
            "waiting for a volume",
            "failedmount",
            "failedattachvolume",
            "provisioningfailed",
        ],
        meaning: "a volume is pending: check the StorageClass and the free space of its storage",
    },
    Trouble {
        signs: &["pending deletion", "finalizer"],
        meaning: "a resource is being deleted and waits for a finalizer: check that the controller \
                  that removes it is running",
    },
    Trouble {
        signs: &["oomkilled", "out of memory"],
        meaning: "a container ran out of memory: raise its limit",
    },
    Trouble {
        signs: &["crashloopbackoff", "back-off restarting failed container"],
        meaning: "a container keeps exiting: check its log",
    },
    Trouble {
        signs: &[
            "failedscheduling",
            "insufficient cpu",
            "insufficient memory",
            "nodes are available",
        ],
        meaning: "a pod does not fit on any node: add nodes, or lower the requests of the pod",
    },
    Trouble {
        signs: &["readiness probe failed", "liveness probe failed", "startup probe failed"],
        meaning: "a probe fails: check that the container listens on the port and path of the \
                  probe",
    },
    Trouble {
        signs: &["is not permitted in project", "is not permitted in the project"],
        meaning: "the AppProject does not permit it: permit it in the project, or move the \
                  resource",
    },
    Trouble {
        signs: &["field is immutable"],
        meaning: "a field is immutable: the resource must be deleted and created again",
    },
    Trouble {
        signs: &[
            "failed to unmarshal",
            "error converting yaml",
            "failed to generate manifest",
            "manifest generation error",
        ],
        meaning: "the manifests cannot be rendered: correct them in Git",
    },
    Trouble {
        signs: &["is invalid:", "admission webhook", "denied the request"],
        meaning: "the API server rejects a manifest: correct it in Git",
    },
];

/// What the evidence most likely means; nothing if it is none of the common ones.
pub(super) fn likely(evidence: &Evidence) -> Option<String> {
    let message = evidence.message.iter().map(|message| plain(message));
    let resource = evidence.resource.iter().map(|text| plain(text));
    let events = evidence.events.iter().map(|text| plain(text));
    // What a log says is the app's own word for it, which proves less.
    let logs = evidence.logs.iter().map(|text| plain(text));
    let texts: Vec<String> = message.chain(resource).chain(events).collect();
    let logs: Vec<String> = logs.collect();
    let told = |texts: &[String]| {
        let is_told = |trouble: &&Trouble| {
            trouble.signs.iter().any(|sign| texts.iter().any(|text| text.contains(sign)))
        };
        TROUBLES.iter().find(is_told).map(|trouble| trouble.meaning.to_owned())
    };
    told(&texts).or_else(|| told(&logs))
}

/// As signs are written. Programs print tables, with any number of spaces.
fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(event: &str) -> String {
        let evidence = Evidence { events: vec![event.to_owned()], ..Evidence::default() };
        let meaning = likely(&evidence).unwrap_or_default();
        meaning.split(':').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_common_ones_are_known() {
        let cases = [
            (
                "Deployment/a: ready in the cluster, at version 2; Argo CD still shows version 1 as \
                 Progressing",
                "Argo CD is behind the cluster",
            ),
            ("Pod/a: Failed Failed to pull image \"x\": not found", "an image cannot be pulled"),
            ("Pod/a: Failed Error: ImagePullBackOff", "an image cannot be pulled"),
            (
                "ReplicaSet/a: FailedCreate pods \"a\" is forbidden: exceeded quota: q, requested: \
                 pods=1",
                "a quota is used up",
            ),
            (
                "Pod/a: FailedScheduling 0/1 nodes are available: pod has unbound immediate \
                 PersistentVolumeClaims",
                "a volume is pending",
            ),
            (
                "Pod/a: FailedScheduling 0/3 nodes are available: 3 Insufficient cpu",
                "a pod does not fit on any node",
            ),
            ("Pod/a: Unhealthy Readiness probe failed: dial tcp: refused", "a probe fails"),
            (
                "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"",
                "a CRD is missing",
            ),
            (
                "The Kubernetes API could not find tiphys.dev/Unheard for requested resource a. \
                 Make sure the \"Unheard\" CRD is installed on the destination cluster.",
                "a CRD is missing",
            ),
            (
                "Internal error occurred: failed calling webhook \"webhook.cert-manager.io\"",
                "an admission webhook does not answer",
            ),
            (
                "ConfigMap/a is Progressing: Pending deletion",
                "a resource is being deleted and waits for a finalizer",
            ),
            ("Pod/a: BackOff Back-off restarting failed container", "a container keeps exiting"),
            ("Error making API request. Code: 503. Errors: * Vault is sealed", "Vault is sealed"),
            (
                "Pod/vault-0: Unhealthy Readiness probe failed: Key Value\nSealed          true",
                "Vault is sealed",
            ),
            (
                "Pod/vault-0 is Progressing, and according to its label Vault is sealed",
                "Vault is sealed",
            ),
            (
                "ConfigMap \"a\" is invalid: data[x/y]: Invalid value",
                "the API server rejects a manifest",
            ),
            ("Failed to unmarshal \"app.yaml\"", "the manifests cannot be rendered"),
            (
                "PersistentVolumeClaim/data is Progressing, waiting for a volume",
                "a volume is pending",
            ),
            ("PersistentVolumeClaim/data is Missing", ""),
            ("all is well", ""),
        ];
        for (event, expected) in cases {
            assert_eq!(of(event), expected, "{event}");
        }
    }

    #[test]
    fn events_say_more_than_logs() {
        let evidence = Evidence {
            events: vec!["Readiness probe failed".to_owned()],
            logs: vec!["could not find the requested resource".to_owned()],
            ..Evidence::default()
        };
        assert!(likely(&evidence).unwrap_or_default().starts_with("a probe fails"));
        let logs = Evidence { events: Vec::new(), ..evidence };
        assert!(likely(&logs).unwrap_or_default().starts_with("a CRD is missing"));
    }
}
