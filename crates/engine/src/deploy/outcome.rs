//! What a deployment has come to, as a Kubernetes Event on the root app.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event as Announcement, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tiphys_model::{Plan, Platform};
use tiphys_run::{Event, How, Verdict};

use crate::kubernetes_events::{LAST_MOMENT, written};
use crate::root_source::RootSource;

/// As the events of the run tell it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    applied: usize,
    failed: usize,
    /// Of the first app that failed: what others fail of often follows from it.
    cause: Option<String>,
}

impl Outcome {
    pub(super) fn note(&mut self, plan: &Plan, event: &Event) {
        match event {
            Event::Done { how: How::Applied, .. } => self.applied += 1,
            Event::Failed { app, cause, .. } => {
                self.failed += 1;
                let name = &plan.app(*app).app.name;
                self.cause.get_or_insert_with(|| format!("{name}: {cause}"));
            }
            _ => {}
        }
    }

    /// None of a run that found nothing to do, that somebody stopped, or that is another's now.
    fn announcement(&self, verdict: Verdict, revision: &str) -> Option<Announcement> {
        let Outcome { applied, failed, cause } = self;
        match verdict {
            Verdict::Succeeded if *applied == 0 => None,
            Verdict::Succeeded => {
                let note = format!("{revision} is deployed; apps synced: {applied}");
                Some(written(EventType::Normal, "TiphysDeployed", note))
            }
            Verdict::Failed | Verdict::Deadline => {
                let first = cause.as_ref().map(|cause| format!("; {cause}")).unwrap_or_default();
                let note = format!("{revision} is not deployed; apps failed: {failed}{first}");
                Some(written(EventType::Warning, "TiphysDeploymentFailed", note))
            }
            Verdict::Interrupted(_) | Verdict::LeaseLost => None,
        }
    }

    /// Tells it on the root app. Whoever may not write Events can still deploy.
    pub(super) async fn publish(
        &self,
        client: &Client,
        platform: &Platform,
        run: &str,
        verdict: Verdict,
        revision: &str,
    ) {
        let Some(announcement) = self.announcement(verdict, revision) else { return };
        let published = async {
            let root = RootSource::root_app(client, platform).await.ok()??;
            let reference: ObjectReference = root.object_ref(&());
            let reporter = Reporter { controller: "tiphys".into(), instance: Some(run.to_owned()) };
            Recorder::new(client.clone(), reporter).publish(&announcement, &reference).await.ok()
        };
        tokio::time::timeout(LAST_MOMENT, published).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use tiphys_model::{AppIx, Scope};
    use tiphys_run::{Cause, Evidence, FailState, Signal};

    use super::*;
    use crate::testkit;

    fn told(events: &[Event], verdict: Verdict) -> Option<(EventType, String)> {
        let plan = tiphys_plan::plan(&testkit::platform(), &Scope::Platform).unwrap();
        let mut outcome = Outcome::default();
        for event in events {
            outcome.note(&plan, event);
        }
        let announcement = outcome.announcement(verdict, "1.2.3")?;
        Some((announcement.type_, announcement.note.unwrap()))
    }

    #[test]
    fn what_it_comes_to_is_told_with_the_first_cause() {
        let done = |how| Event::Done { app: AppIx::new(0), how };
        let failed = |app| Event::Failed {
            app: AppIx::new(app),
            state: FailState::Failed,
            cause: Cause::OperationFailed { message: format!("no {app}").into() },
            evidence: Evidence::default(),
        };
        assert_eq!(told(&[done(How::AlreadyCurrent)], Verdict::Succeeded), None, "no trace");
        let (type_, note) = told(&[done(How::Applied)], Verdict::Succeeded).unwrap();
        assert_eq!((type_, &*note), (EventType::Normal, "1.2.3 is deployed; apps synced: 1"));
        let (type_, note) = told(&[failed(0), failed(1)], Verdict::Failed).unwrap();
        assert_eq!(type_, EventType::Warning);
        assert!(note.starts_with("1.2.3 is not deployed; apps failed: 2; a: "), "{note}");
        assert!(note.contains("no 0"), "{note}");
        assert_eq!(told(&[], Verdict::Interrupted(Signal::Interrupt)), None);
    }
}
