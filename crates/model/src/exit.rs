//! Exit codes: a contract with scripts, pipelines and people.

/// How the program ends. The numbers are documented in `docs/exit-codes.md` and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    /// The action failed: an app failed, timed out or is unhealthy.
    Failed = 1,
    /// The command line was wrong: unknown action, flag or fault kind.
    Usage = 2,
    /// The configuration is absent, unreadable or wrong.
    Configuration = 3,
    /// Credentials were rejected.
    Credentials = 4,
    /// The target does not exist: scope, app, Application, platform.
    NotFound = 5,
    /// The cluster cannot be reached.
    Unreachable = 6,
    /// The run's own deadline passed.
    Deadline = 7,
    /// Another run holds the platform.
    Held = 8,
    /// Stopped by SIGINT.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
}

impl Exit {
    pub const ALL: [Exit; 11] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Configuration,
        Exit::Credentials,
        Exit::NotFound,
        Exit::Unreachable,
        Exit::Deadline,
        Exit::Held,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}
