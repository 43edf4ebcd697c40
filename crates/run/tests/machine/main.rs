//! The rules of the machine, one by one: a driver is told hand-made news, and what it makes of
//! them is compared line by line.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in the helpers of a test, a panic is the report"
)]

mod admission;
mod attempts;
mod beginnings;
mod causes;
mod convergence;
mod criteria;
mod dependencies;
mod endings;
mod evidence;
mod interrupts;
mod limits;
mod log;
mod messages;
mod platform;
mod refusals;
mod requests;
mod run;
mod scope;
mod teardown;
mod timers;
mod unanswered;
mod view;
mod witness;
mod words;
