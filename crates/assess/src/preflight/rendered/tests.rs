//! What is said about what apps render.

use super::*;
use crate::preflight::Outcome;

/// `group/version kind`
fn kind(text: &str) -> Kind {
    let (version, kind) = text.split_once(' ').unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// An app that was never synced, of this cluster.
fn app(name: &str, namespace: &str, rendered: Rendered) -> App {
    let (name, namespace) = (name.to_owned(), namespace.to_owned());
    App { name, namespace, elsewhere: false, synced: false, rendered: Ok(rendered) }
}

fn applies(namespaces: &[&str]) -> Rendered {
    Rendered { namespaces: names(namespaces), ..Rendered::default() }
}

fn made_of(kinds: &[&str], brought: &[&str]) -> Rendered {
    let all = |kinds: &[&str]| kinds.iter().map(|text| kind(text)).collect();
    Rendered { kinds: all(kinds), brought: all(brought), ..Rendered::default() }
}

fn runs(images: &[&str]) -> Rendered {
    Rendered { images: names(images), ..Rendered::default() }
}

fn synced(app: App) -> App {
    App { synced: true, ..app }
}

fn elsewhere(app: App) -> App {
    App { elsewhere: true, ..app }
}

fn unrendered(name: &str, why: Unrendered) -> App {
    App { rendered: Err(why), ..app(name, "", Rendered::default()) }
}

fn failed(name: &str, why: &str) -> App {
    unrendered(name, Unrendered::Failed(why.to_owned()))
}

fn synced_failure(name: &str, why: &str) -> App {
    synced(failed(name, why))
}

/// In a cluster that has the namespaces `shop` and `data`, and serves Services and Deployments.
fn look(apps: Vec<App>) -> Look {
    Look {
        apps,
        absent: 0,
        namespaces: Ok(names(&["data", "default", "kube-system", "shop"])),
        kinds: Ok(["v1 Service", "apps/v1 Deployment"].map(kind).into()),
    }
}

fn mirrors() -> [Mirror; 1] {
    [Mirror { from: "quay.io".to_owned(), to: "m.example/quay".to_owned() }]
}

/// The cases of a row: its outcome and what it says was found.
fn check(row: &str, cases: Vec<(Vec<App>, Outcome, &str)>) {
    for (apps, outcome, found) in cases {
        let checks = judge(&Ok(look(apps)), &mirrors());
        let check = checks.iter().find(|check| check.name == row).unwrap();
        assert_eq!((check.outcome, &*check.found), (outcome, found), "{row}");
        let to_do = matches!(outcome, Outcome::Warning | Outcome::Fail(_));
        assert_eq!(check.next.is_some(), to_do, "{found}");
    }
}

#[test]
fn a_namespace_of_a_new_app_that_is_there_already_is_a_warning() {
    use Outcome::{Pass, Warning};
    let web = |namespace: &str| app("web", namespace, Rendered::default());
    let db = |rendered| app("db", "", rendered);
    check(
        "namespaces of apps",
        vec![
            (vec![web("new")], Pass, "absent"),
            (vec![web("shop")], Warning, "shop (app web)"),
            (vec![web("")], Pass, "absent"),
            (vec![web("default")], Pass, "absent"),
            (vec![db(applies(&["data", "new"]))], Warning, "data (app db)"),
            (
                vec![db(applies(&["data", "shop"])), web("shop")],
                Warning,
                "data (app db); shop (apps db, web)",
            ),
            (vec![synced(web("shop"))], Pass, "from synced apps"),
            (vec![synced(web("shop")), app("new", "shop", applies(&[]))], Pass, "absent"),
            (
                vec![elsewhere(web("shop"))],
                Pass,
                "no app deploys to this cluster; 1 app on other clusters not checked",
            ),
            (
                vec![elsewhere(web("shop")), app("new", "data", applies(&[]))],
                Warning,
                "data (app new); 1 app on other clusters not checked",
            ),
            (vec![web("new"), failed("bad", "x")], Pass, "absent; 1 app not rendered by Argo CD"),
        ],
    );
}

#[test]
fn it_is_said_what_a_teardown_does_with_such_a_namespace() {
    let next = |apps| judge_namespaces(&look(apps)).next.unwrap();
    let leaves = next(vec![app("web", "shop", Rendered::default())]);
    assert!(leaves.contains("keeps a namespace that existed before;"), "{leaves}");
    let applied = next(vec![app("db", "", applies(&["data"]))]);
    assert!(applied.contains("Argo CD deletes data with its app"), "{applied}");
}

#[test]
fn a_kind_that_nobody_brings_is_a_warning() {
    use Outcome::{Pass, Warning};
    let shops = || made_of(&["example.org/v1 Shop"], &[]);
    let operator = || made_of(&["v1 Service"], &["example.org/v1 Shop"]);
    let unknown = "example.org/v1 Shop (app web)";
    check(
        "kinds of apps",
        vec![
            (
                vec![app("web", "", made_of(&["v1 Service", "apps/v1 Deployment"], &[]))],
                Pass,
                "2 kinds",
            ),
            (vec![app("web", "", shops())], Warning, unknown),
            (vec![app("web", "", shops()), app("operator", "", operator())], Pass, "2 kinds"),
            (
                vec![failed("web", "x")],
                Outcome::Skipped,
                "nothing was rendered; 1 app not rendered by Argo CD",
            ),
            // It may have a CRD of an older release.
            (
                vec![
                    app("web", "", made_of(&["example.org/v2 Shop"], &[])),
                    app("op", "", operator()),
                ],
                Warning,
                "example.org/v2 Shop (app web)",
            ),
            (
                vec![app("web", "", made_of(&["apps/v1beta1 Deployment", "v1 Servise"], &[]))],
                Warning,
                "apps/v1beta1 Deployment (app web); v1 Servise (app web)",
            ),
            (
                vec![app("web", "", shops()), elsewhere(app("operator", "", operator()))],
                Warning,
                "example.org/v1 Shop (app web); 1 app on other clusters not checked",
            ),
            (
                vec![app("web", "", shops()), failed("operator", "x")],
                Warning,
                "example.org/v1 Shop (app web); 1 app not rendered by Argo CD",
            ),
        ],
    );
}

#[test]
fn an_image_that_no_mirror_has_is_a_warning() {
    use Outcome::{Pass, Warning};
    check(
        "images of apps",
        vec![
            (vec![app("web", "", runs(&["quay.io/a:1", "m.example/quay/b:1"]))], Pass, "2 images"),
            (
                vec![
                    app("web", "", runs(&["redis:8"])),
                    app("db", "", runs(&["redis:8", "quay.io/a"])),
                ],
                Warning,
                "redis:8 (apps db, web)",
            ),
            // It is pulled there, whichever cluster that is.
            (vec![elsewhere(app("edge", "", runs(&["redis:8"])))], Warning, "redis:8 (app edge)"),
        ],
    );
    let [_, _, images, _] = judge(&Ok(look(vec![app("web", "", runs(&["redis:8"]))])), &[]);
    assert_eq!(images.outcome, Outcome::Skipped);
    assert_eq!(images.found, "no mirrors in `bootstrap.images`");
}

#[test]
fn an_app_that_argo_cd_cannot_render_fails_with_its_reason() {
    use Outcome::{Fail, Pass, Warning};
    let web = || app("web", "", Rendered::default());
    let late = |name| unrendered(name, Unrendered::Late(Duration::from_secs(30)));
    let denied = || unrendered("theirs", Unrendered::Denied("permission denied".to_owned()));
    check(
        "manifests of apps",
        vec![
            (vec![web()], Pass, "1 app"),
            (
                vec![web(), synced_failure("bad", "no chart\nat all")],
                Fail(Trouble::Missing),
                "no chart (app bad)",
            ),
            (
                vec![synced_failure("a", "x"), denied(), late("slow")],
                Fail(Trouble::Rejected),
                "not rendered within 30 s (app slow); permission denied (app theirs); x (app a)",
            ),
            (vec![failed("new", "no such kind")], Warning, "no such kind (app new)"),
            (vec![web(), late("b"), late("c")], Warning, "not rendered within 30 s (apps b, c)"),
        ],
    );
    let some = Look { absent: 2, ..look(vec![web()]) };
    assert_eq!(judge_manifests(&some).found, "1 app; 2 apps without an Application yet");
}

#[test]
fn where_nothing_was_read_each_row_says_why() {
    let problem = |trouble| Problem { trouble, why: "there is no token".to_owned(), next: None };
    let rendered_first = "unknown until Argo CD renders the root app";
    let asked = "cannot reach the cluster";
    let api = "needs Argo CD's API, but `argocd.access` is `kubernetes`";
    for (reason, why, namespaces) in [
        (NotRead::NoCluster, asked, asked),
        (NotRead::NoArgoCd, "Argo CD not found in the cluster", rendered_first),
        (NotRead::NoApplications, "no app has an Application yet", rendered_first),
        (NotRead::NoApi, api, api),
        (problem(Trouble::Missing).into(), "there is no token", "there is no token"),
        (problem(Trouble::Unreachable).into(), asked, asked),
    ] {
        let checks = judge(&Err(reason.clone()), &mirrors());
        assert!(checks.iter().all(|check| check.outcome == Outcome::Skipped), "{reason:?}");
        let found = checks.each_ref().map(|check| &*check.found);
        assert_eq!(found, [why, why, why, namespaces], "{reason:?}");
    }
}

#[test]
fn what_cannot_be_listed_is_in_nobodys_way() {
    let denied = Problem { trouble: Trouble::Rejected, why: "may not".to_owned(), next: None };
    let look = Look {
        namespaces: Err(denied.clone()),
        kinds: Err(denied),
        ..look(vec![app("web", "shop", made_of(&["x/v1 X"], &[]))])
    };
    for check in [judge_namespaces(&look), judge_kinds(&look)] {
        assert_eq!((check.outcome, &*check.found), (Outcome::Skipped, "may not"));
    }
}
