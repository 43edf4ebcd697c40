//! The rules of the machine, one by one: a driver is told hand-made news, and what it makes of
//! them is compared line by line.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in the helpers of a test, a panic is the report"
)]

mod attempts;
mod convergence;
mod dependencies;
mod interrupts;
mod limits;
mod messages;
mod platform;
mod requests;
mod run;
mod scope;
mod teardown;
