//! Mistakes that somebody could have made.
//!
//! The laws are only worth something if they catch mistakes. Each [`Bug`] is one: with the
//! feature `planted-bugs` a test can switch it on and must see a law fail. Without the feature,
//! which is how the program is built, `planted!` is `false` and nothing of it is left over.

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    // Law 1: the start condition.
    IgnoreHealthOfDependencies,
    StartWhenFirstDependencyIsDone,
    ForgetDependenciesThatTurnedUnhealthy,
    SkipAssessment,
    EqualStampsCount,
    // Law 2: failures propagate, and are not masked.
    SkipOnlyDirectDependants,
    SucceedDespiteFailures,
    SucceedDespiteUnhealthyApps,
    FailedCountsAsDone,
    // Law 3: teardown in reverse.
    RemoveInDeployOrder,
    RemoveWhileDependantIsGoing,
    RemoveAllAtOnce,
    // Law 4: a run over its own result changes nothing.
    AlwaysSync,
    ResyncWhenDone,
    AcceptAnyRevision,
    // Law 5: events are the state.
    AcceptEventsAfterTheEnd,
    ForgetAttempts,
    DoneTwice,
    // Law 6: one attempt in flight, limits kept.
    IgnoreConcurrency,
    IgnoreGroups,
    ResendWithoutLooking,
    NeverAdopt,
    // Law 7: started is never un-started.
    UnstartWhenDependencyFails,
    RestartConverging,
    SkipWhatHasStarted,
    // Law 8: same seed, same log.
    PriorityByAddress,
    // Law 9: every run ends.
    NoHealthTimeout,
    NoSyncTimeout,
    WaitForUnhealthyForEver,
    NeverAskAgain,
    HeldUpForGood,
    // The gate.
    IgnoreForeignOperation,
    IgnoreMovedComparison,
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Runs `body` with a bug switched on, for this thread only.
#[cfg(feature = "planted-bugs")]
pub fn with_bug<T>(bug: Bug, body: impl FnOnce() -> T) -> T {
    ACTIVE.set(Some(bug));
    let result = body();
    ACTIVE.set(None);
    result
}

#[cfg(feature = "planted-bugs")]
pub(crate) fn is_active(bug: Bug) -> bool {
    ACTIVE.get() == Some(bug)
}

#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub(crate) fn is_active(_: Bug) -> bool {
    false
}

/// Whether a bug is switched on.
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_active($crate::planted::Bug::$bug)
    };
}

pub(crate) use planted;
