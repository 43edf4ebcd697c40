//! The run: gate, machine, driver, and the view that everything reads.
//!
//! Nothing here knows Kubernetes, a clock or a network. An engine shows the driver what it
//! sees, does what the driver asks for, and says what came of it.

mod cause;
mod driver;
mod effect;
mod event;
pub mod gate;
mod line;
mod machine;
mod observation;
pub mod planted;
mod recorder;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
mod time;
mod view;

pub use cause::{Cause, Pending};
pub use driver::{Driver, Output};
pub use effect::{Answer, Clock, Effect, Input, RequestNumber, SyncAnswer};
pub use event::{
    Attempt, Because, BlockedBy, Event, Evidence, FailState, How, Signal, SparedBy, Unhealthy,
    Verdict, WaitingOn,
};
pub use line::{
    Counts, EngineName, EventKind, EventLine, GraphApp, LogLine, RunFinished, RunStarted,
    UnhealthyApp, VERSION as EVENTS_VERSION,
};
pub use machine::{Action, Illegal, Machine, Phase, Step};
pub use observation::{
    Condition, ConditionKind, Deleting, Drifted, Initiator, LastOperation, Observation, Operation,
    OperationPhase, Revisions,
};
pub use recorder::Recorder;
pub use time::{Stamp, Time};
pub use view::{AppState, AppView, RunView};
