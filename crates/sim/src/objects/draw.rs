//! Which objects an app brings, and which others make beside it.

use tiphys_assess::ownership::Object;

use super::Side;
use crate::chance::Chance;

/// A namespace that was there before the platform.
pub(super) const BEFORE: &str = "team";
/// An Application that is not of the platform.
pub(super) const OTHER_APP: &str = "blog";
/// The group of all custom resources.
const CUSTOM: &str = "example.org";

/// An object as it is made, before it has a uid.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) object: Object,
    pub(super) side: Side,
    /// The app applies it, so that it goes in Argo CD's cascade.
    pub(super) applied: bool,
    pub(super) owner: Option<Owner>,
    /// Whoever makes it also marks its namespace as one to keep.
    pub(super) marks_namespace: bool,
}

/// The object that another one belongs to; its kind and name say which.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) kind: String,
    pub(super) name: String,
}

/// What an app brings and what others make beside it.
pub(super) fn for_app(app: &str, apps: usize, chance: &mut Chance) -> Vec<Drawn> {
    let namespace = if chance.once_in(6) {
        BEFORE.to_owned()
    } else {
        format!("ns-{}", chance.between(0, apps as u64 / 2))
    };
    let came = namespace != BEFORE;
    let name = |suffix: &str| format!("{app}{suffix}");
    let mut drawn = vec![tracked(app, object("apps", "Deployment", &namespace, &name("")))];
    let workload = Owner { kind: "Deployment".to_owned(), name: name("") };
    drawn.push(owned(object("apps", "ReplicaSet", &namespace, &name("-1")), workload));
    let replicas = Owner { kind: "ReplicaSet".to_owned(), name: name("-1") };
    drawn.push(owned(object("", "Pod", &namespace, &name("-1-a")), replicas));
    if came && chance.once_in(4) {
        drawn.push(tracked(app, object("cert-manager.io", "Certificate", &namespace, &name(""))));
        let mut secret = object("", "Secret", &namespace, &name("-tls"));
        annotate(&mut secret, "cert-manager.io/certificate-name", &name(""));
        drawn.push(unmarked(secret, Side::Platform));
    }
    if came && chance.once_in(4) {
        // The claim of a StatefulSet: nothing on it says whose it is.
        let mut claim = object("", "PersistentVolumeClaim", &namespace, &name("-data"));
        claim.creator = Some("kube-controller-manager".to_owned());
        drawn.push(unmarked(claim, Side::Platform));
    }
    if chance.once_in(4) {
        let crd = format!("{}s.{CUSTOM}", kind(app).to_lowercase());
        let group = "apiextensions.k8s.io";
        drawn.push(tracked(app, object(group, "CustomResourceDefinition", "", &crd)));
        if came {
            let mut custom = object(CUSTOM, &kind(app), &namespace, &name("-made"));
            custom.creator = Some("operator".to_owned());
            drawn.push(unmarked(custom, Side::Platform));
        }
        if chance.once_in(3) {
            let mut custom = object(CUSTOM, &kind(app), "", &name("-theirs"));
            custom.creator = Some("kubectl-create".to_owned());
            drawn.push(unmarked(custom, Side::Others));
            // Made for it, in a namespace of the platform.
            let owner = Owner { kind: kind(app), name: name("-theirs") };
            let mut secret = owned(object("", "Secret", &namespace, &name("-theirs")), owner);
            secret.side = Side::Others;
            drawn.push(secret);
        }
    }
    if chance.once_in(5) {
        drawn.extend(kept(app, &namespace, chance));
    }
    if chance.once_in(5) {
        drawn.push(foreign(app, &namespace, chance));
    }
    drawn
}

/// What others make while the platform is removed, in its namespaces.
pub(super) fn late(drawn: &[Vec<Drawn>], chance: &mut Chance) -> Vec<Drawn> {
    let namespaces: Vec<String> = drawn
        .iter()
        .flatten()
        .map(|drawn| drawn.object.namespace.clone())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    let times = chance.between(0, 2);
    let late = (0..times).filter_map(|time| {
        let namespace = chance.pick(&namespaces)?.clone();
        Some(foreign(&format!("late-{time}"), &namespace, chance))
    });
    late.collect()
}

/// Something that the app applies and somebody wants to keep, or that can never be made again.
fn kept(app: &str, namespace: &str, chance: &mut Chance) -> Vec<Drawn> {
    let name = format!("{app}-kept");
    match chance.between(0, 3) {
        0 => {
            let mut drawn = tracked(app, object("", "ConfigMap", namespace, &name));
            annotate(&mut drawn.object, "argocd.argoproj.io/sync-options", "Delete=false");
            drawn.side = Side::Others;
            // What belongs to it stays with it.
            let owner = Owner { kind: "ConfigMap".to_owned(), name: name.clone() };
            let mut child = owned(object("", "Secret", namespace, &name), owner);
            child.side = Side::Others;
            vec![drawn, child]
        }
        1 => {
            let mut drawn = tracked(app, object("", "PersistentVolumeClaim", namespace, &name));
            keep_by_helm(&mut drawn.object);
            drawn.side = Side::Others;
            vec![drawn]
        }
        2 => {
            let mut key = object("", "Secret", namespace, &name);
            let label = "sealedsecrets.bitnami.com/sealed-secrets-key";
            key.labels.insert(label.to_owned(), "active".to_owned());
            vec![unmarked(key, Side::Others)]
        }
        _ => {
            let note = object("", "ConfigMap", namespace, &format!("{name}-namespace"));
            let mut drawn = tracked(app, note);
            drawn.marks_namespace = true;
            vec![drawn]
        }
    }
}

/// Something that is not the platform's, in a namespace of it.
fn foreign(app: &str, namespace: &str, chance: &mut Chance) -> Drawn {
    let mut object = object("", "ConfigMap", namespace, &format!("{app}-foreign"));
    match chance.between(0, 4) {
        0 => track(OTHER_APP, &mut object),
        1 => {
            // An app of the same name, in another Argo CD.
            track(app, &mut object);
            annotate(&mut object, "argocd.argoproj.io/installation-id", "elsewhere");
        }
        2 => annotate(&mut object, "meta.helm.sh/release-name", "redis"),
        3 => {
            object.labels.insert("tiphys.dev/platform".to_owned(), "staging".to_owned());
        }
        _ => object.creator = Some("kubectl-client-side-apply".to_owned()),
    }
    unmarked(object, Side::Others)
}

/// The kind of custom resources that an app defines.
fn kind(app: &str) -> String {
    format!("Kind{}", app.replace('-', ""))
}

fn object(group: &str, kind: &str, namespace: &str, name: &str) -> Object {
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
    Object { group, kind, namespace, name, ..Object::default() }
}

fn tracked(app: &str, mut object: Object) -> Drawn {
    track(app, &mut object);
    let side = Side::Platform;
    Drawn { object, side, applied: true, owner: None, marks_namespace: false }
}

fn unmarked(object: Object, side: Side) -> Drawn {
    Drawn { object, side, applied: false, owner: None, marks_namespace: false }
}

fn owned(object: Object, owner: Owner) -> Drawn {
    Drawn { owner: Some(owner), ..unmarked(object, Side::Platform) }
}

fn track(app: &str, object: &mut Object) {
    let Object { group, kind, namespace, name, .. } = &object;
    let id = format!("{app}:{group}/{kind}:{namespace}/{name}");
    annotate(object, "argocd.argoproj.io/tracking-id", &id);
}

pub(super) fn keep_by_helm(object: &mut Object) {
    annotate(object, "helm.sh/resource-policy", "keep");
}

fn annotate(object: &mut Object, name: &str, value: &str) {
    object.annotations.insert(name.to_owned(), value.to_owned());
}
