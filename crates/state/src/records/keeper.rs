//! Writing a record while its run goes on.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use tiphys_cluster::{Cause, RequestError};
use tiphys_run::{EventKind, EventLine};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::buffer::Buffer;
use super::{RecordStore, RunHead};

/// How long after a write that has failed the next one is tried.
const AGAIN: Duration = Duration::from_secs(5);

/// Why a record is not complete.
#[derive(Debug)]
pub enum Unkept {
    /// The namespace does not exist: `configure` creates it, and a teardown removes it.
    Nowhere,
    Failed(RequestError),
}

/// Writes the lines of a run to its record until the channel closes.
pub async fn keep(
    store: RecordStore,
    argocd: &str,
    by: &str,
    mut lines: UnboundedReceiver<(EventLine, String)>,
) -> Result<(), Unkept> {
    // A run that never began has no record.
    let Some((first, text)) = lines.recv().await else { return Ok(()) };
    let EventKind::RunStarted(began) = &first.kind else { return Ok(()) };
    let mut keeper = Keeper {
        head: RunHead::new(began, first.at, argocd, by),
        store,
        written: None,
        uid: None,
        buffer: Buffer::default(),
        pending: VecDeque::new(),
        failed: None,
    };
    keeper.take(&first, &text);
    keeper.write().await?;
    loop {
        let due = keeper.due();
        let wait = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = lines.recv() => match line {
                Some((line, text)) => keeper.take(&line, &text),
                None => break,
            },
            () = wait => keeper.close_due(),
        }
        if keeper.wants_to_write() {
            keeper.write().await?;
        }
    }
    keeper.close();
    keeper.write().await?;
    keeper.failed.map_or(Ok(()), |(_, error)| Err(Unkept::Failed(error)))
}

struct Keeper {
    store: RecordStore,
    head: RunHead,
    /// The head as it is there.
    written: Option<RunHead>,
    /// Of the head, once it is there.
    uid: Option<String>,
    buffer: Buffer,
    /// Segments that are closed and not yet written.
    pending: VecDeque<String>,
    /// The last write, if it failed.
    failed: Option<(Instant, RequestError)>,
}

impl Keeper {
    fn take(&mut self, line: &EventLine, text: &str) {
        self.pending.extend(self.buffer.push(text, Instant::now()));
        if let EventKind::RunFinished(finished) = &line.kind {
            self.head.finish(finished);
            self.close();
        }
    }

    fn close(&mut self) {
        self.pending.extend(self.buffer.close());
    }

    fn close_due(&mut self) {
        if self.buffer.due().is_some_and(|due| due <= Instant::now()) {
            self.close();
        }
    }

    /// When there is something to do, if no line comes before.
    fn due(&self) -> Option<Instant> {
        let again = self.failed.as_ref().map(|(at, _)| *at + AGAIN);
        [self.buffer.due(), again].into_iter().flatten().min()
    }

    fn wants_to_write(&self) -> bool {
        match &self.failed {
            Some((at, _)) => *at + AGAIN <= Instant::now(),
            None => !self.pending.is_empty(),
        }
    }

    /// Writes what is pending. What fails for a moment is tried again; what cannot be is given up.
    async fn write(&mut self) -> Result<(), Unkept> {
        self.failed = match self.try_to_write().await {
            Ok(()) => None,
            Err(error) => match error.cause() {
                Cause::NotFound => return Err(Unkept::Nowhere),
                Cause::Denied => return Err(Unkept::Failed(error)),
                Cause::Conflict | Cause::Unreachable | Cause::Other => {
                    Some((Instant::now(), error))
                }
            },
        };
        Ok(())
    }

    async fn try_to_write(&mut self) -> Result<(), RequestError> {
        let uid = if let Some(uid) = &self.uid {
            uid.clone()
        } else {
            let uid = self.store.write_head(&self.head).await?;
            self.written = Some(self.head.clone());
            self.store.forget_old(&self.head).await?;
            self.uid.insert(uid).clone()
        };
        while let Some(lines) = self.pending.front() {
            let number = self.head.segments + 1;
            self.store.write_segment(&self.head, &uid, number, lines).await?;
            self.head.segments = number;
            self.pending.pop_front();
        }
        // It counts segments that are there.
        if self.written.as_ref() != Some(&self.head) {
            self.store.write_head(&self.head).await?;
            self.written = Some(self.head.clone());
        }
        Ok(())
    }
}
