//! Mistakes that somebody could have made.
//!
//! The laws are only worth something if they catch mistakes. Each `Bug` is one: with the feature
//! `planted-bugs` a test can switch it on and must see a law fail. A mistake is a line of its own
//! next to the right code. Without the feature, which is how the program is built, that line is
//! empty and nothing of it is left over.

#[cfg(feature = "planted-bugs")]
mod bug;

#[cfg(feature = "planted-bugs")]
pub use bug::{Bug, is_active, with_bug};
#[cfg(feature = "planted-bugs")]
pub(crate) use bug::{count, hash_order};

/// What happens if a bug is switched on: a variable gets another value, or something is done.
#[cfg(feature = "planted-bugs")]
#[macro_export]
macro_rules! planted {
    ($bug:ident => let $variable:ident = $wrong:expr) => {
        let $variable =
            if $crate::planted::is_active($crate::planted::Bug::$bug) { $wrong } else { $variable };
    };
    ($bug:ident => $wrong:expr) => {
        if $crate::planted::is_active($crate::planted::Bug::$bug) {
            $wrong;
        }
    };
}

/// Nothing: the program is built without the bugs.
#[cfg(not(feature = "planted-bugs"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident => $($wrong:tt)*) => {};
}

pub(crate) use planted;
