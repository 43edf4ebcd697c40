//! The refreshes of one client that have not ended: how many there may be, and which of them Argo
//! CD's controller has missed.
//!
//! A refresh is cheap to ask for and dear to do, so the unfinished ones are bounded, not the
//! requests. The controller can miss one that is asked for right after it has written the app itself,
//! and asking again for the same changes nothing that it could notice; a hard one does. That costs it
//! more, so it is only asked for where one was missed.

#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiphys_run::Stamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::rest::CallError;
use verdict::{Others, Verdict, refresh_verdict};

/// How long a refresh may take.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(60);
/// How many may be unfinished. The controller does 20 at once, if nobody has changed that, and may
/// have others to serve.
const AT_ONCE: usize = 16;
/// How long one waits for its turn. A run asks again after half a minute, and must not wait twice.
const TURN_TIMEOUT: Duration = Duration::from_secs(25);
/// How often it is looked whether one was missed.
const POLL: Duration = Duration::from_millis(500);

/// Shared by all clones of a client.
#[derive(Clone)]
pub(crate) struct Refreshes {
    room: Arc<Semaphore>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    asked: u64,
    /// In the order in which they were asked for.
    unfinished: BTreeMap<u64, Unfinished>,
    /// When each app was compared last.
    compared: BTreeMap<String, Stamp>,
}

struct Unfinished {
    app: String,
    /// One that was asked for later has ended.
    overtaken: bool,
    /// Another app was compared.
    compared: bool,
}

/// A refresh that is being asked for.
pub(crate) struct Refresh {
    refreshes: Refreshes,
    number: u64,
    since: Instant,
    _room: OwnedSemaphorePermit,
}

impl Refreshes {
    pub(crate) fn new() -> Self {
        Refreshes { room: Arc::new(Semaphore::new(AT_ONCE)), known: Arc::default() }
    }

    /// Waits until there is room for one more.
    pub(crate) async fn begin(&self, app: &str) -> Result<Refresh, CallError> {
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.room.clone().acquire_owned()).await;
        let Ok(Ok(room)) = turn else {
            let message = format!(
                "{AT_ONCE} other refreshes did not finish within {} s",
                TURN_TIMEOUT.as_secs()
            );
            return Err(CallError::Unanswered { message });
        };
        let number = self.change(|known| {
            known.asked += 1;
            let app = app.to_owned();
            let unfinished = Unfinished { app, overtaken: false, compared: false };
            known.unfinished.insert(known.asked, unfinished);
            known.asked
        });
        let since = Instant::now();
        Ok(Refresh { refreshes: self.clone(), number, since, _room: room })
    }

    /// Takes note of when an app was compared last.
    pub(crate) fn compared(&self, app: &str, at: Option<Stamp>) {
        let Some(at) = at else { return };
        self.change(|known| {
            let before = known.compared.insert(app.to_owned(), at);
            if before.is_some_and(|before| before < at) {
                let others = known.unfinished.values_mut().filter(|other| other.app != app);
                others.for_each(|other| other.compared = true);
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        // Nobody panics while it is locked; if one did, what is known would still be true.
        change(&mut self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Refresh {
    /// Whether the controller has missed it.
    pub(crate) fn is_missed(&self) -> bool {
        refresh_verdict(self.since.elapsed(), self.others()) == Verdict::AskHard
    }

    /// Returns when the controller has missed it.
    pub(crate) async fn missed(&self) {
        while !self.is_missed() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// It has ended as it should: those that were asked for before it have been overtaken.
    pub(crate) fn succeeded(self) {
        self.refreshes.change(|known| {
            let Some(this) = known.unfinished.remove(&self.number) else { return };
            let before = known.unfinished.range_mut(..self.number).map(|(_, other)| other);
            before.filter(|other| other.app != this.app).for_each(|other| other.overtaken = true);
        });
    }

    fn others(&self) -> Others {
        self.refreshes.change(|known| {
            let Some(this) = known.unfinished.get(&self.number) else { return Others::Wait };
            let waits = known.unfinished.values().any(|other| other.app != this.app);
            match this {
                Unfinished { overtaken: true, .. } => Others::Overtook,
                _ if waits => Others::Wait,
                Unfinished { compared, .. } => Others::Idle { compared: *compared },
            }
        })
    }
}

impl Drop for Refresh {
    fn drop(&mut self) {
        self.refreshes.change(|known| known.unfinished.remove(&self.number));
    }
}
