//! What objects say about themselves.

use std::collections::BTreeMap;

use tiphys_run::planted;

use super::{Keep, Object, Ownership, Platform, Whose};

const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const INSTALLATION: &str = "argocd.argoproj.io/installation-id";
/// Argo CD's older way to track, and a label that every chart sets.
const INSTANCE: &str = "app.kubernetes.io/instance";
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const HELM_POLICY: &str = "helm.sh/resource-policy";
const HELM_RELEASE: &str = "meta.helm.sh/release-name";
const SEALING_KEY: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";
const CERTIFICATE: &str = "cert-manager.io/certificate-name";
const TIPHYS_PLATFORM: &str = "tiphys.dev/platform";

/// Made for every namespace, or about objects that are judged themselves. By group and kind.
const AMBIENT: [(&str, &str); 13] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
    ("wgpolicyk8s.io", "PolicyReport"),
    ("wgpolicyk8s.io", "ClusterPolicyReport"),
    ("reports.kyverno.io", "EphemeralReport"),
    ("aquasecurity.github.io", "VulnerabilityReport"),
    ("aquasecurity.github.io", "ConfigAuditReport"),
    ("aquasecurity.github.io", "ExposedSecretReport"),
    ("cilium.io", "CiliumEndpoint"),
    ("metrics.k8s.io", "PodMetrics"),
];
/// The same for single objects of common kinds.
const AMBIENT_NAMES: [(&str, &str); 5] = [
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ConfigMap", "linkerd-identity-trust-roots"),
];
/// Field managers of people's tools, and of deployers beside Argo CD. What follows the word is a
/// part of the tool: `kubectl-edit`, `helm-controller`.
const SOMEBODY: [&str; 16] = [
    "kubectl",
    "k9s",
    "lens",
    "openlens",
    "node-fetch",
    "mozilla",
    "headlamp",
    "dashboard",
    "rancher",
    "oc",
    "helm",
    "flux",
    "kustomize-controller",
    "terraform",
    "pulumi",
    "ansible",
];

/// What is beyond doubt, whoever owns the object.
pub(super) fn own_mark(object: &Object, platform: &Platform) -> Option<Ownership> {
    let foreign = |whose| Some(Ownership::Foreign(whose));
    let annotation = |name: &str| object.annotations.get(name).map(String::as_str);
    if let Some(app) = tracked_by(object) {
        let installation = annotation(INSTALLATION);
        if let Some(id) = installation.filter(|id| Some(*id) != platform.installation.as_deref()) {
            return foreign(Whose::Installation(id.to_owned()));
        }
        planted!(EveryTrackingIdIsOurs => return Some(Ownership::Ours));
        // One of the same name may be there, of another Argo CD or another platform.
        if platform.others.contains(app) || !platform.apps.contains(app) {
            return foreign(Whose::App(app.to_owned()));
        }
    }
    if let Some(label) = object.labels.get(INSTANCE).filter(|app| platform.others.contains(*app))
        && tracked_by(object).is_none()
    {
        return foreign(Whose::App(label.clone()));
    }
    if let Some(keep) = keep(&object.labels, &object.annotations) {
        return Some(Ownership::Kept(keep));
    }
    if let Some(app) = tracked_by(object) {
        if platform.keeping.contains(app) && !says_itself(&object.annotations) {
            return Some(Ownership::Kept(Keep::AppDeleteFalse));
        }
        return Some(Ownership::Ours);
    }
    if let Some(other) = object.labels.get(TIPHYS_PLATFORM) {
        let ours = *other == platform.name;
        return if ours { Some(Ownership::Ours) } else { foreign(Whose::Platform(other.clone())) };
    }
    if is_ambient(object) {
        return Some(Ownership::Ambient);
    }
    // Argo CD renders charts and leaves no such mark.
    if let Some(release) = annotation(HELM_RELEASE) {
        return foreign(Whose::HelmRelease(release.to_owned()));
    }
    if object.labels.get("owner").map(String::as_str) == Some("helm")
        && let Some(release) = object.labels.get("name")
    {
        return foreign(Whose::HelmRelease(release.clone()));
    }
    None
}

/// The app that has applied an object. Controllers copy annotations to what they make of an
/// object, so one that speaks of another object does not count.
fn tracked_by(object: &Object) -> Option<&str> {
    let Object { group, kind, namespace, name, .. } = object;
    tracking_app(object.annotations.get(TRACKING)?, group, kind, namespace, name)
}

/// The app of a tracking id, if it is that of this object.
#[must_use]
pub fn tracking_app<'a>(
    id: &'a str,
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<&'a str> {
    let (app, of) = id.split_once(':')?;
    let own = of == format!("{group}/{kind}:{namespace}/{name}");
    // What is cluster-wide carries the namespace of its app.
    let cluster_wide = namespace.is_empty()
        && of.starts_with(&format!("{group}/{kind}:"))
        && of.ends_with(&format!("/{name}"));
    (own || cluster_wide).then_some(app)
}

/// Whether an object says itself what happens to it when its app is deleted: then its app does not.
#[must_use]
pub fn says_itself(annotations: &BTreeMap<String, String>) -> bool {
    let options = annotations.get(SYNC_OPTIONS).map(String::as_str).unwrap_or_default();
    options.split(',').any(|option| option.trim().starts_with("Delete="))
}

/// Whether somebody wants to keep an object with these labels and annotations.
#[must_use]
pub fn keep(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Option<Keep> {
    planted!(KeptCountsAsOurs => return None);
    let options = annotations.get(SYNC_OPTIONS).map(String::as_str).unwrap_or_default();
    if options.split(',').any(|option| option.trim() == "Delete=false") {
        Some(Keep::DeleteFalse)
    } else if annotations.get(HELM_POLICY).map(String::as_str) == Some("keep") {
        Some(Keep::HelmPolicy)
    } else if labels.contains_key(SEALING_KEY) {
        Some(Keep::SealingKey)
    } else {
        None
    }
}

fn is_ambient(object: &Object) -> bool {
    AMBIENT.contains(&(&object.group, &object.kind))
        || (object.group.is_empty() && AMBIENT_NAMES.contains(&(&object.kind, &object.name)))
}

/// The object for which this one was made, if that is said by a name and not by an owner.
pub(super) fn made_for(object: &Object) -> Option<(&str, &str, &str, &str)> {
    if !object.group.is_empty() || object.kind != "Secret" {
        return None;
    }
    let name = object.annotations.get(CERTIFICATE)?;
    Some(("cert-manager.io", "Certificate", &object.namespace, name))
}

/// Who has created an object, if that is a person or another deployer.
pub(super) fn somebody(object: &Object) -> Option<&str> {
    planted!(CreatorsDoNotMatter => return None);
    let creator = object.creator.as_deref()?;
    let lower = creator.to_ascii_lowercase();
    let known = SOMEBODY.iter().any(|tool| {
        let rest = lower.strip_prefix(tool);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    });
    known.then_some(creator)
}
