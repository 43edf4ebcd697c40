//! A table of cases, and laws on random objects.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn platform() -> Platform {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Platform {
        name: "prod".to_owned(),
        apps: set(&["db", "keeper", "shop"]),
        keeping: set(&["keeper"]),
        installation: None,
        others: set(&["blog"]),
        namespaces: set(&["shop"]),
        including: Vec::new(),
        disposable: Vec::new(),
    }
}

/// `group/Kind:namespace/name`
fn object(name: &str) -> Object {
    let (kind, name) = name.split_once(':').unwrap();
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
    let uid = format!("uid of {kind} {name}");
    Object { group, kind, namespace, name, uid, ..Object::default() }
}

impl Object {
    fn annotated(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    fn labelled(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    fn tracked(self, app: &str) -> Self {
        let Object { group, kind, namespace, name, .. } = &self;
        let id = format!("{app}:{group}/{kind}:{namespace}/{name}");
        self.annotated("argocd.argoproj.io/tracking-id", &id)
    }

    fn created_by(mut self, creator: &str) -> Self {
        self.creator = Some(creator.to_owned());
        self
    }

    fn owned_by(mut self, owner: &Object) -> Self {
        self.owners.push(owner.uid.clone());
        self
    }
}

fn alone(object: Object) -> String {
    told(&judge(&[object], &platform())[0])
}

fn told(ownership: &Ownership) -> String {
    match ownership {
        Ownership::Ours => "ours".to_owned(),
        Ownership::Derived => "derived".to_owned(),
        Ownership::Ambient => "ambient".to_owned(),
        Ownership::Kept(_) => format!("kept: {ownership}"),
        Ownership::Foreign(_) => format!("foreign: {ownership}"),
        Ownership::Taken(_) => format!("taken: {ownership}"),
    }
}

#[test]
fn what_an_object_says_itself() {
    let sync = "argocd.argoproj.io/sync-options";
    let key = "sealedsecrets.bitnami.com/sealed-secrets-key";
    let other = "foreign: the Application `blog` has applied it";
    let unmarked = "foreign: nothing shows that it belongs to the platform";
    let kept = "kept: it has the sync option `Delete=false`";
    for (object, expected) in [
        (object("ConfigMap:shop/a").tracked("shop"), "ours"),
        (object("ConfigMap:elsewhere/a").tracked("shop"), "ours"),
        (object("ConfigMap:shop/a").tracked("blog"), other),
        (object("ConfigMap:shop/a").labelled("app.kubernetes.io/instance", "blog"), other),
        (object("ConfigMap:shop/a").labelled("app.kubernetes.io/instance", "shop"), "derived"),
        (object("ConfigMap:shop/a").tracked("shop").annotated(sync, "Delete=false"), kept),
        (object("ConfigMap:shop/a").annotated(sync, "Prune=false, Delete=false"), kept),
        (object("ConfigMap:shop/a").tracked("shop").annotated(sync, "Prune=false"), "ours"),
        (
            object("ConfigMap:shop/a").tracked("keeper").annotated(sync, "Prune=false"),
            "kept: its app has the sync option `Delete=false`",
        ),
        (object("ConfigMap:shop/a").tracked("keeper").annotated(sync, "Delete=true"), "ours"),
        (object("ConfigMap:shop/a").tracked("blog").annotated(sync, "Delete=false"), other),
        (
            object("ConfigMap:shop/a").annotated("helm.sh/resource-policy", "keep"),
            "kept: it has the annotation `helm.sh/resource-policy: keep`",
        ),
        (
            object("Secret:shop/key").labelled(key, "active"),
            "kept: it is a sealing key: sealed secrets cannot be read without it",
        ),
        (
            object("ConfigMap:shop/a").annotated("meta.helm.sh/release-name", "their"),
            "foreign: the Helm release `their` has installed it",
        ),
        (
            object("Secret:shop/sh.helm.release.v1.their.v1")
                .labelled("owner", "helm")
                .labelled("name", "their"),
            "foreign: the Helm release `their` has installed it",
        ),
        (
            object("ConfigMap:shop/a").labelled("tiphys.dev/platform", "test"),
            "foreign: the platform `test` has created it",
        ),
        (object("ConfigMap:shop/a").labelled("tiphys.dev/platform", "prod"), "ours"),
        (object("ServiceAccount:shop/default"), "ambient"),
        (object("ConfigMap:shop/kube-root-ca.crt"), "ambient"),
        (object("Event:shop/a.17"), "ambient"),
        (object("wgpolicyk8s.io/PolicyReport:shop/a"), "ambient"),
        (object("Secret:shop/db-credentials").created_by("db-operator"), "derived"),
        (
            object("PersistentVolumeClaim:shop/data-db-0").created_by("kube-controller-manager"),
            "derived",
        ),
        (
            object("Secret:shop/a").created_by("kubectl-create"),
            "foreign: `kubectl-create` has created it",
        ),
        (object("Secret:shop/a").created_by("Mozilla"), "foreign: `Mozilla` has created it"),
        (object("Secret:shop/a").created_by("helm"), "foreign: `helm` has created it"),
        (object("Secret:shop/a").created_by("octavia"), "derived"),
        (object("cert-manager.io/Certificate:blog/tls").created_by("blog-controller"), unmarked),
        (object("cert-manager.io/ClusterIssuer:all"), unmarked),
        (object("cert-manager.io/ClusterIssuer:all").tracked("shop"), "ours"),
    ] {
        let called = format!("{object:?}");
        assert_eq!(alone(object), expected, "{called}");
    }
}

#[test]
fn a_mark_that_was_copied_says_nothing() {
    let id = "blog:apps/Deployment:shop/web";
    let copied = object("Pod:shop/web-1").annotated("argocd.argoproj.io/tracking-id", id);
    assert_eq!(alone(copied), "derived");
}

#[test]
fn an_app_of_the_same_name_in_another_argo_cd_is_somebody_elses() {
    let mut platform = platform();
    let id = "argocd.argoproj.io/installation-id";
    let theirs = object("ConfigMap:shop/a").tracked("shop").annotated(id, "theirs");
    let whose = Ownership::Foreign(Whose::Installation("theirs".to_owned()));
    assert_eq!(judge(std::slice::from_ref(&theirs), &platform), [whose]);
    platform.installation = Some("theirs".to_owned());
    assert_eq!(judge(&[theirs], &platform), [Ownership::Ours]);
}

#[test]
fn what_an_application_that_is_there_claims_is_its_own() {
    let mut platform = platform();
    platform.others.insert("shop".to_owned());
    let moved = object("ConfigMap:shop/a").tracked("shop");
    assert!(!judge(&[moved], &platform)[0].goes(), "the app moved to another platform");
}

#[test]
fn what_belongs_to_an_object_shares_its_fate() {
    let ours = object("apps/StatefulSet:shop/db").tracked("db");
    let pod = object("Pod:shop/db-0").owned_by(&ours).created_by("kubectl-create");
    let theirs = object("apps/Deployment:shop/web").tracked("blog");
    let set = object("apps/ReplicaSet:shop/web-1").owned_by(&theirs);
    let their_pod = object("Pod:shop/web-1-a").owned_by(&set);
    // Read in any order.
    let judged = judge(&[their_pod, pod, set, theirs, ours], &platform());
    let told: Vec<String> = judged.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "foreign: it belongs to ReplicaSet/shop/web-1, which stays",
            "derived",
            "foreign: it belongs to Deployment/shop/web, which stays",
            "foreign: the Application `blog` has applied it",
            "ours",
        ]
    );
}

#[test]
fn what_has_two_owners_stays_with_either() {
    let ours = object("ConfigMap:shop/ours").tracked("shop");
    let theirs = object("ConfigMap:shop/theirs").tracked("blog");
    let both = object("Secret:shop/both").owned_by(&ours).owned_by(&theirs);
    assert!(!judge(&[both, ours, theirs], &platform())[0].goes());
}

#[test]
fn secrets_of_certificates_share_their_fate() {
    let name = "cert-manager.io/certificate-name";
    let secret = || object("Secret:shop/tls").annotated(name, "tls");
    let certificate = object("cert-manager.io/Certificate:shop/tls");
    let kept = certificate.clone().annotated("argocd.argoproj.io/sync-options", "Delete=false");
    assert_eq!(judge(&[secret(), certificate.tracked("shop")], &platform())[0], Ownership::Derived);
    assert!(!judge(&[secret(), kept], &platform())[0].goes());
    assert_eq!(alone(secret()), "derived", "the certificate is gone");
}

#[test]
fn a_circle_of_owners_is_judged_by_what_its_members_say() {
    let mut a = object("ConfigMap:shop/a");
    let b = object("ConfigMap:shop/b").owned_by(&a);
    a.owners.push(b.uid.clone());
    assert_eq!(judge(&[a, b], &platform()), [Ownership::Derived, Ownership::Derived]);
}

fn arbitrary() -> impl Strategy<Value = Object> {
    let mark = prop_oneof![
        Just(""),
        Just("shop"),
        Just("blog"),
        Just("keep"),
        Just("kubectl-edit"),
        Just("operator"),
    ];
    let place = prop_oneof![Just("shop"), Just("elsewhere"), Just("")];
    (0..40_usize, mark, place, vec(0..40_usize, 0..3)).prop_map(|(name, mark, place, owners)| {
        let mut one = object(&format!("ConfigMap:{place}/{name}"));
        one.uid = name.to_string();
        one.owners = owners.iter().map(ToString::to_string).collect();
        match mark {
            "shop" | "blog" => one.tracked(mark),
            "keep" => one.annotated("helm.sh/resource-policy", "keep"),
            "" => one,
            creator => one.created_by(creator),
        }
    })
}

proptest! {
    /// Whatever the rest: what somebody else has applied, or wants to keep, never goes, and neither
    /// does what belongs to it.
    #[test]
    fn nothing_of_others_goes(mut objects in vec(arbitrary(), 0..30)) {
        objects.sort_by(|a, b| a.uid.cmp(&b.uid));
        objects.dedup_by(|b, a| a.uid == b.uid);
        let judged = judge(&objects, &platform());
        let stays: BTreeSet<&str> = objects.iter().zip(&judged)
            .filter(|(_, fate)| !fate.goes()).map(|(object, _)| object.uid.as_str()).collect();
        for (object, fate) in objects.iter().zip(&judged) {
            let id = object.annotations.get("argocd.argoproj.io/tracking-id");
            let theirs = id.is_some_and(|id| id.starts_with("blog"));
            let ours = id.is_some_and(|id| id.starts_with("shop"));
            let keep = object.annotations.contains_key("helm.sh/resource-policy");
            prop_assert!(!((theirs || keep) && fate.goes()), "{object:?} {fate:?}");
            prop_assert!(!ours || *fate == Ownership::Ours, "{object:?} {fate:?}");
            let held = object.owners.iter().any(|owner| stays.contains(owner.as_str()));
            prop_assert!(!(held && !ours && fate.goes()), "{object:?} {fate:?}");
        }
    }

    /// The order in which objects were read does not matter.
    #[test]
    fn judgement_does_not_depend_on_the_order(objects in vec(arbitrary(), 0..20)) {
        let mut objects = objects;
        objects.sort_by(|a, b| a.uid.cmp(&b.uid));
        objects.dedup_by(|b, a| a.uid == b.uid);
        let forward: Vec<bool> = judge(&objects, &platform()).iter().map(Ownership::goes).collect();
        objects.reverse();
        let mut backward: Vec<bool> =
            judge(&objects, &platform()).iter().map(Ownership::goes).collect();
        backward.reverse();
        prop_assert_eq!(forward, backward);
    }
}

fn taking(named: &str, objects: &[Object]) -> Vec<String> {
    let including = vec![named.parse().unwrap()];
    judge(objects, &Platform { including, ..platform() }).iter().map(told).collect()
}

#[test]
fn what_is_named_goes_although_it_is_somebody_elses() {
    let mut theirs = object("cert-manager.io/Certificate:web/a").created_by("kubectl-create");
    theirs.plural = "certificates".to_owned();
    let taken = "taken: `kubectl-create` has created it";
    let stays = "foreign: `kubectl-create` has created it";
    for (named, expected) in [
        ("Certificate", taken),
        ("Certificate.cert-manager.io", taken),
        ("certificates.cert-manager.io", taken),
        ("web", taken),
        ("Certificate.example.org", stays),
        ("Issuer", stays),
        ("shop", stays),
        ("certificates", stays),
    ] {
        assert_eq!(taking(named, std::slice::from_ref(&theirs)), [expected], "{named}");
    }
    let namespace = object("Namespace:web").created_by("kubectl-create");
    assert_eq!(taking("web", &[namespace]), [taken]);
    for wrong in ["", "a/b", ".x", "Certificate.", "two words"] {
        wrong.parse::<Others>().unwrap_err();
    }
}

#[test]
fn what_is_of_a_disposable_kind_goes_and_of_no_other_group() {
    let theirs = [
        object("Secret:web/a").created_by("kubectl-create"),
        object("example.org/Secret:web/a").created_by("kubectl-create"),
        object("example.org/Thing:web/a").created_by("kubectl-create"),
        object("Thing:web/a").created_by("kubectl-create"),
        object("Secret:web/kept").annotated("argocd.argoproj.io/sync-options", "Delete=false"),
    ];
    let kind = |group: &str, kind: &str| {
        let [group, kind] = [group, kind].map(str::to_owned);
        GroupKind { group, kind }
    };
    let disposable = vec![kind("", "Secret"), kind("example.org", "Thing")];
    let judged = judge(&theirs, &Platform { disposable, ..platform() });
    let goes: Vec<bool> = judged.iter().map(Ownership::goes).collect();
    assert_eq!(goes, [true, false, true, false, false]);
    assert_eq!(told(&judged[0]), "taken: `kubectl-create` has created it");
}

#[test]
fn what_is_kept_never_goes_nor_what_belongs_to_it() {
    let sync = "argocd.argoproj.io/sync-options";
    let kept = object("Secret:web/kept").annotated(sync, "Delete=false");
    let below = object("Secret:web/below").owned_by(&kept);
    let theirs = object("ConfigMap:web/theirs").created_by("kubectl-create");
    let made = object("Secret:web/made").owned_by(&theirs);
    let both = object("Secret:web/both").owned_by(&theirs).owned_by(&kept);
    let objects = [kept, below, theirs, made, both];
    assert_eq!(
        taking("Secret", &objects),
        [
            "kept: it has the sync option `Delete=false`",
            "foreign: it belongs to Secret/web/kept, which stays",
            "foreign: `kubectl-create` has created it",
            "taken: it belongs to ConfigMap/web/theirs, which stays",
            "foreign: it belongs to ConfigMap/web/theirs, which stays",
        ]
    );
    let judged = taking("web", &objects);
    assert!(judged[0].starts_with("kept") && judged[1].starts_with("foreign"), "{judged:?}");
    assert_eq!(judged[2..4], ["taken: `kubectl-create` has created it", "derived"]);
    assert!(judged[4].starts_with("foreign"), "{judged:?}");
}
