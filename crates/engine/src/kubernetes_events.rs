//! Kubernetes Events on Applications, so that who looks at one sees what a run does to it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event as Announcement, EventType, Recorder, Reporter};
use tiphys_run::{Event, How};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// As many may wait to be written; more are dropped, because a run waits for nobody's reading.
const ROOM: usize = 256;
/// How long the end of a run waits for them to be written.
pub(crate) const LAST_MOMENT: Duration = Duration::from_secs(2);
/// The API server takes a little more than this.
const LONGEST_NOTE: usize = 1000;

/// Announces without ever being waited for.
pub(crate) struct EventPublisher {
    sender: Sender<(Announcement, ObjectReference)>,
    writer: JoinHandle<()>,
}

impl EventPublisher {
    /// Starts to write what is announced, for as long as this value is there.
    pub(crate) fn start(client: Client, run: String) -> Self {
        let (sender, receiver) = channel(ROOM);
        let reporter = Reporter { controller: "tiphys".into(), instance: Some(run) };
        let writer = tokio::spawn(write(Recorder::new(client, reporter), receiver));
        EventPublisher { sender, writer }
    }

    /// Gives what has been announced a moment to be written.
    pub(crate) async fn finish(self) {
        drop(self.sender);
        tokio::time::timeout(LAST_MOMENT, self.writer).await.ok();
    }

    pub(crate) fn publish(&self, event: &Event, application: ObjectReference) {
        if let Some(announcement) = announcement(event) {
            // Full, or nobody may write: the run's own log has it all the same.
            self.sender.try_send((announcement, application)).unwrap_or_default();
        }
    }
}

async fn write(recorder: Recorder, mut receiver: Receiver<(Announcement, ObjectReference)>) {
    while let Some((announcement, application)) = receiver.recv().await {
        // Whoever may not write Events can still deploy.
        recorder.publish(&announcement, &application).await.unwrap_or_default();
    }
}

fn announcement(event: &Event) -> Option<Announcement> {
    let (type_, reason, note) = match event {
        Event::Syncing { attempt, .. } => {
            let note = format!("attempt {} at {}", attempt.operation.attempt, attempt.revisions);
            (EventType::Normal, "TiphysSyncing", note)
        }
        Event::Done { how: How::Applied, .. } => {
            (EventType::Normal, "TiphysDone", "synced and Healthy".to_owned())
        }
        Event::Retrying { cause, .. } => (EventType::Warning, "TiphysRetrying", cause.to_string()),
        Event::Failed { cause, .. } => (EventType::Warning, "TiphysFailed", cause.to_string()),
        Event::HandedOff { .. } => {
            (EventType::Normal, "TiphysHandedOff", "automated sync is allowed again".to_owned())
        }
        _ => return None,
    };
    Some(written(type_, reason, note))
}

/// The note is cut to what an Event can hold.
pub(crate) fn written(type_: EventType, reason: &str, note: String) -> Announcement {
    let note = match note.char_indices().nth(LONGEST_NOTE) {
        Some((end, _)) => note[..end].to_owned(),
        None => note,
    };
    Announcement {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: "Deploy".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use tiphys_model::AppIx;
    use tiphys_run::{Cause, Evidence, FailState};

    use super::*;

    #[test]
    fn a_long_cause_is_cut_to_what_an_event_can_hold() {
        let message = "ä".repeat(3 * LONGEST_NOTE);
        let failed = Event::Failed {
            app: AppIx::new(0),
            state: FailState::Failed,
            cause: Cause::OperationFailed { message: message.into() },
            evidence: Evidence::default(),
        };
        let announcement = announcement(&failed).unwrap();
        assert_eq!(announcement.note.unwrap().chars().count(), LONGEST_NOTE);
        assert_eq!(announcement.type_, EventType::Warning);
    }

    #[test]
    fn what_a_machine_notes_for_itself_is_not_announced() {
        assert!(announcement(&Event::RefreshAsked { app: AppIx::new(0) }).is_none());
        let current = Event::Done { app: AppIx::new(0), how: How::AlreadyCurrent };
        assert!(announcement(&current).is_none(), "a run over its own result leaves no trace");
    }
}
