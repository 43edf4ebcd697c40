//! One word per thing: what people read is what stands in the log for programs.

use std::fmt;

use serde::Serialize;
use tiphys_run::{Action, EngineName, FailState, How, Signal};

/// A word as the log has it.
struct InLog<T>(T);

impl<T: Serialize> fmt::Display for InLog<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

#[test]
fn people_and_programs_read_the_same_words() {
    for how in [How::Applied, How::AlreadyCurrent] {
        assert_eq!(how.as_str(), InLog(how).to_string());
    }
    for state in [FailState::Failed, FailState::Errored, FailState::TimedOut] {
        assert_eq!(state.as_str(), InLog(state).to_string());
    }
    for action in [Action::Deploy, Action::Teardown] {
        assert_eq!(action.as_str(), InLog(action).to_string());
    }
    for engine in [EngineName::Simulated, EngineName::Local, EngineName::Workflows] {
        assert_eq!(engine.as_str(), InLog(engine).to_string());
    }
    for signal in [Signal::Interrupt, Signal::Terminate] {
        assert_eq!(signal.as_str(), InLog(signal).to_string());
    }
}
