//! What a run on a cluster tells while it goes on.

use tiphys_run::{EngineName, Event, Revisions, Time};
use tokio::sync::oneshot;

use crate::teardown::Leftover;

#[derive(Debug)]
pub enum RunUpdate {
    /// What it is doing before the run begins, or after it.
    Note(String),
    /// What the run passes over, and somebody should know.
    Warning(String),
    /// The run begins.
    Began {
        run: String,
        engine: EngineName,
        /// What is deployed; a teardown has none.
        revisions: Option<Revisions>,
    },
    Event(Time, Event),
    /// Whether these are to be removed; no answer is a no.
    Ask {
        leftovers: Vec<Leftover>,
        answer: oneshot::Sender<bool>,
    },
}
