//! Mistakes that somebody could have made.
//!
//! The laws are only worth something if they catch mistakes. Each [`Bug`] is one: with the
//! feature `planted-bugs` a test can switch it on and must see a law fail. Without the feature,
//! which is how the program is built, `planted!` is `false` and nothing of it is left over.

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    // About the start condition.
    IgnoreHealthOfDependencies,
    StartWhenFirstDependencyIsDone,
    ForgetDependenciesThatTurnedUnhealthy,
    SkipAssessment,
    EqualStampsCount,
    // About failures.
    SucceedDespiteFailures,
    SucceedDespiteUnhealthyApps,
    FailedCountsAsDone,
    // About teardown.
    RemoveInDeployOrder,
    RemoveWhileDependantIsGoing,
    RemoveAllAtOnce,
    // About a run over its own result.
    AlwaysSync,
    OnlyThisRunCounts,
    OnlyOurOperationsCount,
    // About events and state.
    AcceptEventsAfterTheEnd,
    KeepRefreshesOutOfTheLog,
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
    RetryWhatTurnedUnhealthy,
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
}

impl Bug {
    pub const ALL: [Bug; 35] = [
        Bug::IgnoreHealthOfDependencies,
        Bug::StartWhenFirstDependencyIsDone,
        Bug::ForgetDependenciesThatTurnedUnhealthy,
        Bug::SkipAssessment,
        Bug::EqualStampsCount,
        Bug::SucceedDespiteFailures,
        Bug::SucceedDespiteUnhealthyApps,
        Bug::FailedCountsAsDone,
        Bug::RemoveInDeployOrder,
        Bug::RemoveWhileDependantIsGoing,
        Bug::RemoveAllAtOnce,
        Bug::AlwaysSync,
        Bug::OnlyThisRunCounts,
        Bug::OnlyOurOperationsCount,
        Bug::AcceptEventsAfterTheEnd,
        Bug::KeepRefreshesOutOfTheLog,
        Bug::RefreshTooSoon,
        Bug::DoneTwice,
        Bug::IgnoreConcurrency,
        Bug::IgnoreGroups,
        Bug::PausesTakeNoRoom,
        Bug::ForgetAttempts,
        Bug::ResendWithoutLooking,
        Bug::NeverAdopt,
        Bug::SkipWhatHasStarted,
        Bug::UnstartWhenDependencyAils,
        Bug::RetryWhatTurnedUnhealthy,
        Bug::TimersInHashOrder,
        Bug::FollowersInHashOrder,
        Bug::IdsFromAGlobalCounter,
        Bug::NoHealthTimeout,
        Bug::NoSyncTimeout,
        Bug::WaitForUnhealthyForEver,
        Bug::SkipOnlyDirectDependants,
        Bug::NeverAskAgain,
    ];
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::cell::Cell;
    use std::hash::{BuildHasher, RandomState};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Bug;

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

    pub(crate) fn is_active(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }

    /// The order in which a hash map would have them: another one in each map.
    pub(crate) fn hash_order<T>(items: &mut [T]) {
        let state = RandomState::new();
        let mut position = 0;
        items.sort_by_cached_key(|_| {
            position += 1;
            state.hash_one(position)
        });
    }

    /// The next number of the process.
    pub(crate) fn count() -> u32 {
        static COUNTER: AtomicU32 = AtomicU32::new(1);
        COUNTER.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    use super::Bug;

    #[inline]
    pub(crate) fn is_active(_: Bug) -> bool {
        false
    }

    #[inline]
    pub(crate) fn hash_order<T>(_: &mut [T]) {}

    #[inline]
    pub(crate) fn count() -> u32 {
        0
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::with_bug;
pub(crate) use switch::{count, hash_order, is_active};

/// Whether a bug is switched on.
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_active($crate::planted::Bug::$bug)
    };
}

pub(crate) use planted;
