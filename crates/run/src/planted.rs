//! Mistakes that somebody could have made.
//!
//! The laws are only worth something if they catch mistakes. Each [`Bug`] is one: with the
//! feature `planted-bugs` a test can switch it on and must see a law fail. Without the feature,
//! which is how the program is built, `planted!` is `false` and nothing of it is left.

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
mod active {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Runs `body` with a bug switched on, for this thread only.
    pub fn with_bug<T>(bug: Bug, body: impl FnOnce() -> T) -> T {
        ACTIVE.set(Some(bug));
        let result = body();
        ACTIVE.set(None);
        result
    }

    pub(crate) fn is_active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use active::with_bug;

#[cfg(feature = "planted-bugs")]
pub(crate) fn is_active(bug: Bug) -> bool {
    active::is_active(bug)
}

/// Whether a bug is switched on; `false` without the feature.
#[macro_export]
#[doc(hidden)]
macro_rules! planted {
    ($bug:ident) => {{
        #[cfg(feature = "planted-bugs")]
        let active = $crate::planted::is_active($crate::planted::Bug::$bug);
        #[cfg(not(feature = "planted-bugs"))]
        let active = false;
        active
    }};
}
