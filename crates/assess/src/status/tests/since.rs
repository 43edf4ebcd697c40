//! Since when an app is not well, and what that says about causes.

use jiff::Timestamp;
use tiphys_model::{AppName, Health};

use super::{Case, roots, seen, well};
use crate::status::{Seen, State};
use tiphys_run::Stamp;
use tiphys_run::{Observation, OperationPhase};

#[test]
fn what_came_clearly_later_is_no_cause() {
    let chain = |db, api, web| {
        Case::new().degraded_at("db", db).degraded_at("api", api).degraded_at("web", web)
    };
    let cases: [(&str, Case, &[&str]); 7] = [
        ("in the order of the graph", chain(100, 200, 300), &["db > api web"]),
        ("a little later", chain(130, 100, 100), &["db > api web"]),
        ("clearly later", chain(131, 100, 100), &["api > web", "db >"]),
        ("last of all, with web because of api", chain(500, 100, 300), &["api > web", "db >"]),
        ("each later than what depends on it", chain(300, 200, 100), &["db >", "api >", "web >"]),
        (
            "a time that is not known",
            Case::new().degraded("db").degraded_at("api", 100),
            &["db > api"],
        ),
        (
            "failed, since nobody knows when",
            Case::new().degraded_at("api", 100).change("db", |seen| {
                seen.last.as_mut().unwrap().phase = OperationPhase::Failed;
            }),
            &["db > api"],
        ),
    ];
    for (what, case, expected) in cases {
        assert_eq!(roots(&case.status()), expected, "{what}");
    }
    let status = chain(131, 100, 100).status();
    let app = |name: &str| status.app(&AppName::parse(name).unwrap()).unwrap();
    assert_eq!(app("api").waiting_for, [AppName::parse("db").unwrap()], "it is not well either");
    assert_eq!(app("api").because, []);
}

#[test]
fn since_when_is_told_where_health_is_what_is_wrong() {
    let since = |case: Case, state| {
        let status = case.status();
        let db = status.app(&AppName::parse("db").unwrap()).unwrap();
        assert_eq!(db.state, state);
        assert_eq!(db.since.map(Timestamp::as_second), Some(100));
        assert!(status.root_causes.iter().all(|root| root.since == db.ailing_since()));
        db.ailing_since().map(Timestamp::as_second)
    };
    let change = |change: fn(&mut Observation)| {
        let mut observation = well();
        change(&mut observation);
        let seen = Seen { health_since: Some(Stamp(100)), ..seen(observation) };
        Case::new().show("db", Some(seen))
    };
    assert_eq!(since(change(|seen| seen.health = Health::Degraded), State::Unhealthy), Some(100));
    let progressing = change(|seen| seen.health = Health::Progressing);
    assert_eq!(since(progressing, State::Converging), Some(100));
    let unassessed = change(|seen| seen.reconciled_at = Some(Stamp(99)));
    assert_eq!(since(unassessed, State::Converging), None);
    assert_eq!(since(change(|_| {}), State::Done), None);
}
