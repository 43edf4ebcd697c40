//! The list of mistakes, and the switch for one of them.

#![expect(clippy::disallowed_types, reason = "hash order is one of the mistakes")]

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! bugs {
    ($($bug:ident,)*) => {
        /// One mistake.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($bug,)*
        }

        impl Bug {
            pub const ALL: &[Bug] = &[$(Bug::$bug,)*];
        }
    };
}

bugs! {
    // About the start condition.
    SyncedCountsAsDone,
    OneDoneIsEnough,
    AilingCountsAsDone,
    SkipAssessment,
    EqualStampsCount,
    // About failures.
    SucceedDespiteFailures,
    SucceedDespiteUnhealthyApps,
    FailedCountsAsDone,
    SpareMovingApps,
    // About teardown.
    RemoveInDeployOrder,
    GoingCountsAsGone,
    RemoveAllAtOnce,
    // About a run over its own result.
    AlwaysSync,
    OnlyThisRunCounts,
    OnlyOurOperationsCount,
    // About events and state.
    AcceptEventsAfterTheEnd,
    HideRefreshes,
    RefreshTooSoon,
    DoneTwice,
    // About limits.
    IgnoreConcurrency,
    IgnoreGroups,
    PausesTakeNoRoom,
    ForgetAttempts,
    ResendWithoutLooking,
    NeverAdopt,
    // About what has started.
    SkipWhatHasStarted,
    UnstartWhenDependencyAils,
    RestartWhatTurnedUnhealthy,
    // About determinism.
    TimersInHashOrder,
    FollowersInHashOrder,
    IdsFromAGlobalCounter,
    // About ending.
    NoHealthTimeout,
    NoSyncTimeout,
    WaitForUnhealthyForEver,
    SkipOnlyDirectDependants,
    NeverAskAgain,
    // About what is others'.
    KeptCountsAsOurs,
    EveryTrackingIdIsOurs,
    CreatorsDoNotMatter,
    WhatHasAnOwnerGoes,
    OnlyMarkedContainersStay,
    CrdsGoWithWhatTheyDefine,
}

thread_local! {
    static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Switches the bug off again, also when a test panics.
struct Off;

impl Drop for Off {
    fn drop(&mut self) {
        ACTIVE.set(None);
    }
}

/// Runs `body` with a bug switched on, for this thread only.
pub fn with_bug<T>(bug: Bug, body: impl FnOnce() -> T) -> T {
    ACTIVE.set(Some(bug));
    let _off = Off;
    body()
}

/// Whether this thread makes this mistake now.
#[must_use]
pub fn is_active(bug: Bug) -> bool {
    ACTIVE.get() == Some(bug)
}

/// The order in which a hash map would have them: another one in each map.
pub(crate) fn hash_order<T>(mut items: Vec<T>) -> Vec<T> {
    let state = RandomState::new();
    let mut position = 0;
    items.sort_by_cached_key(|_| {
        position += 1;
        state.hash_one(position)
    });
    items
}

/// The next number of the process.
pub(crate) fn count() -> u32 {
    static COUNTER: AtomicU32 = AtomicU32::new(1);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}
