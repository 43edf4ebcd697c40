//! The laws are a net without holes: mistakes that somebody could have made are switched on in
//! the machine, one by one, and the law that forbids each of them must catch it.

#![expect(clippy::print_stdout, reason = "the table of what was caught is for people")]

use std::collections::BTreeMap;

use tiphys_run::planted::{Bug, with_bug};
use tiphys_sim::{Law, run_seed};

/// How many seeds a mistake may get past.
const SEEDS: u64 = 8000;
/// How many mistakes at least each law is tried on.
const BUGS_PER_LAW: usize = 3;

/// Which law forbids what.
const FORBIDDEN: [(Law, &[Bug]); 10] = [
    (
        Law::StartCondition,
        &[
            Bug::SyncedCountsAsDone,
            Bug::OneDoneIsEnough,
            Bug::AilingCountsAsDone,
            Bug::SkipAssessment,
            Bug::EqualStampsCount,
        ],
    ),
    (
        Law::FailurePropagation,
        &[
            Bug::SucceedDespiteFailures,
            Bug::SucceedDespiteUnhealthyApps,
            Bug::FailedCountsAsDone,
            Bug::SpareMovingApps,
        ],
    ),
    (
        Law::ReverseTeardown,
        &[Bug::RemoveInDeployOrder, Bug::GoingCountsAsGone, Bug::RemoveAllAtOnce],
    ),
    (Law::Idempotence, &[Bug::AlwaysSync, Bug::OnlyThisRunCounts, Bug::OnlyOurOperationsCount]),
    (
        Law::EventsAreTheState,
        &[Bug::AcceptEventsAfterTheEnd, Bug::HideRefreshes, Bug::RefreshTooSoon, Bug::DoneTwice],
    ),
    (
        Law::Limits,
        &[
            Bug::IgnoreConcurrency,
            Bug::IgnoreGroups,
            Bug::PausesTakeNoRoom,
            Bug::ForgetAttempts,
            Bug::ResendWithoutLooking,
            Bug::NeverAdopt,
        ],
    ),
    (
        Law::NeverUnstarted,
        &[Bug::SkipWhatHasStarted, Bug::UnstartWhenDependencyAils, Bug::RestartWhatTurnedUnhealthy],
    ),
    (
        Law::Determinism,
        &[Bug::TimersInHashOrder, Bug::FollowersInHashOrder, Bug::IdsFromAGlobalCounter],
    ),
    (
        Law::Ending,
        &[
            Bug::NoHealthTimeout,
            Bug::NoSyncTimeout,
            Bug::WaitForUnhealthyForEver,
            Bug::SkipOnlyDirectDependants,
            Bug::NeverAskAgain,
        ],
    ),
    (
        Law::OthersStay,
        &[
            Bug::KeptCountsAsOurs,
            Bug::EveryTrackingIdIsOurs,
            Bug::CreatorsDoNotMatter,
            Bug::WhatHasAnOwnerGoes,
            Bug::OnlyMarkedContainersStay,
            Bug::CrdsGoWithWhatTheyDefine,
        ],
    ),
];

/// The first seed on which the law catches the bug.
fn caught(bug: Bug, law: Law) -> Option<u64> {
    with_bug(bug, || {
        (0..SEEDS).find(|seed| match run_seed(*seed) {
            Ok(()) => false,
            Err(finding) => finding.broken.iter().any(|broken| broken.law == law),
        })
    })
}

/// Two halves, so that two cores share the work.
fn check(half: &[(Law, &[Bug])]) {
    let mut missed = Vec::new();
    for (law, bugs) in half {
        for bug in *bugs {
            let seed = caught(*bug, *law);
            let found = seed.map_or("not caught".to_owned(), |seed| format!("seed {seed}"));
            println!("| {bug:?} | {} {law:?} | {found} |", *law as u8);
            missed.extend(seed.is_none().then_some(*bug));
        }
    }
    assert_eq!(missed, [], "within {SEEDS} seeds no law catches these");
}

#[test]
fn laws_1_to_5_catch_the_mistakes_they_forbid() {
    check(&FORBIDDEN[..5]);
}

#[test]
fn laws_6_to_10_catch_the_mistakes_they_forbid() {
    check(&FORBIDDEN[5..]);
}

#[test]
fn every_mistake_is_tried_on_one_law_and_every_law_on_three_mistakes() {
    let mut tried: Vec<Bug> = FORBIDDEN.iter().flat_map(|(_, bugs)| bugs.iter().copied()).collect();
    tried.sort_unstable();
    let mut all = Bug::ALL.to_vec();
    all.sort_unstable();
    assert_eq!(tried, all);
    let by_law: BTreeMap<Law, usize> =
        FORBIDDEN.iter().map(|(law, bugs)| (*law, bugs.len())).collect();
    assert_eq!(by_law.len(), 10);
    assert!(by_law.values().all(|bugs| *bugs >= BUGS_PER_LAW), "{by_law:?}");
}
