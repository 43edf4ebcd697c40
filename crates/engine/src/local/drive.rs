//! A run in progress: what comes in from outside, and what goes out.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use tiphys_model::{AppIx, Role};
use tiphys_run::{
    Answer, Driver, Event, HeldUp, Initiator, Input, Observation, Output, Time, Verdict,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::announce::Announcer;
use super::closer::{Closer, Errand, Sight};
use super::effects::Hands;
use crate::lease::{Lease, NotRenewed, RENEWAL};
use crate::news::News as Told;
use crate::signals::Signals;
use tiphys_argocd::application::Application;
use tiphys_argocd::watch::News;
use tiphys_cluster::{ClusterError, Kind};

/// What came back from outside.
pub(super) enum Returned {
    /// A look, before the answer that it belongs to.
    Seen(AppIx, Box<Application>),
    Answer(AppIx, Answer),
    /// It is gone, and so is what it has applied.
    Gone(AppIx, u64),
    /// What a closer look has found.
    Closer(Sight),
    /// Nothing more can be done.
    Broken(ClusterError),
}

/// All that a run in progress has at hand.
pub(super) struct Local<'a> {
    pub(super) driver: Driver,
    pub(super) began: Instant,
    pub(super) names: BTreeMap<String, AppIx>,
    pub(super) hands: Arc<Hands>,
    pub(super) returned: UnboundedSender<Returned>,
    pub(super) announcer: Announcer,
    pub(super) closer: Closer,
    /// Whom to tell what happens.
    pub(super) events: &'a dyn Fn(Time, Event),
    /// Whom to tell what else is to be known.
    pub(super) news: &'a dyn Fn(Told),
    /// Filled until the whole platform has been seen once.
    pub(super) first: Option<Vec<Option<Observation>>>,
    /// How many of the first closer looks have not returned, once all has been seen.
    pub(super) first_looks: Option<usize>,
    pub(super) held: bool,
}

impl Local<'_> {
    pub(super) async fn drive(
        mut self,
        news: impl futures::Stream<Item = News>,
        mut inbox: UnboundedReceiver<Returned>,
        lease: &mut Lease,
        signals: &mut Signals,
    ) -> Result<Verdict, ClusterError> {
        let mut news = pin!(news);
        let mut renewal = tokio::time::interval(RENEWAL);
        renewal.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.driver.machine().verdict().is_none() {
            let timer =
                self.driver.machine().wake_at().map(|wake| self.began + (wake - Time::START));
            let wake = timer.into_iter().chain(self.closer.wake_at()).min();
            let tick = async {
                match wake {
                    Some(wake) => tokio::time::sleep_until(wake.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What is known comes first: a decision should rest on all of it.
                biased;
                signal = signals.next() => self.tell(Input::Interrupted(signal))?,
                _ = renewal.tick() => {
                    if let Some(error) = self.renew(lease).await? {
                        return Err(error);
                    }
                }
                returned = inbox.recv() => match returned {
                    Some(returned) => self.take(returned)?,
                    None => unreachable!("this run keeps a sender itself"),
                },
                told = news.next() => match told {
                    Some(told) => self.hear(told)?,
                    None => return Err(ended()),
                },
                () = tick => self.tell(Input::Tick)?,
            }
            self.look_closer();
        }
        self.announcer.finish().await;
        if let Some(note) = self.hands.pace.told() {
            (self.news)(Told::Note(note));
        }
        self.driver.machine().verdict().ok_or_else(ended)
    }

    /// Keeps the Lease. An error that is returned as a value is the end of the run.
    async fn renew(&mut self, lease: &mut Lease) -> Result<Option<ClusterError>, ClusterError> {
        match lease.renew().await {
            Err(NotRenewed::Lost { .. }) => {
                self.tell(Input::LeaseLost)?;
                Ok(None)
            }
            // Another run may begin now, so this one has ended.
            Err(NotRenewed::Unanswered(error)) if lease.has_run_out() => Ok(Some(error)),
            Ok(()) | Err(NotRenewed::Unanswered(_)) => Ok(None),
        }
    }

    fn hear(&mut self, news: News) -> Result<(), ClusterError> {
        match news {
            News::Seen(application) => {
                let app = self.names.get(application.name()).copied();
                app.map_or(Ok(()), |app| self.see(app, &application))
            }
            News::Gone { name, version } => {
                let Some(app) = self.names.get(&name).copied() else { return Ok(()) };
                if let Some(first) = &mut self.first {
                    first[app.position()] = None;
                } else {
                    let (hands, returned) = (self.hands.clone(), self.returned.clone());
                    tokio::spawn(async move {
                        hands.await_gone(&name).await;
                        returned.send(Returned::Gone(app, version)).unwrap_or_default();
                    });
                }
                Ok(())
            }
            News::Listed => self.listed(),
            News::Trouble(error) if error.kind == Kind::Denied => Err(error),
            // It goes on by itself; what it misses meanwhile is looked for, and if the cluster
            // stays away, the Lease runs out.
            News::Trouble(_) => Ok(()),
        }
    }

    fn take(&mut self, returned: Returned) -> Result<(), ClusterError> {
        match returned {
            Returned::Seen(app, application) => self.see(app, &application),
            Returned::Answer(app, answer) => self.tell(Input::Answered { app, answer }),
            Returned::Gone(app, version) => self.tell(Input::Observed { app, version, seen: None }),
            Returned::Closer(sight) => self.looked_closer(sight),
            Returned::Broken(error) => Err(error),
        }
    }

    fn see(&mut self, app: AppIx, application: &Application) -> Result<(), ClusterError> {
        let mut seen = application.observe().map_err(|error| {
            let what = format!("the Application `{}` cannot be judged", application.name());
            ClusterError::new(Kind::Failed, what, error.to_string())
        })?;
        self.hands.remember(app, application);
        if let Some(first) = &mut self.first {
            first[app.position()] = Some(seen);
            return Ok(());
        }
        self.closer.complete(app, self.driver.machine().step(app), &mut seen);
        let version = seen.version;
        self.tell(Input::Observed { app, version, seen: Some(Arc::new(seen)) })?;
        self.plan_look(app);
        Ok(())
    }

    /// All has been seen once. What only a closer look shows has to be known, too, before the
    /// run decides what is to be synced.
    fn listed(&mut self) -> Result<(), ClusterError> {
        let (Some(first), None) = (&self.first, self.first_looks) else { return Ok(()) };
        let apps = self.driver.machine().plan().graph.apps();
        let errands: Vec<Errand> = apps
            .zip(first)
            .filter_map(|(app, seen)| self.closer.first(app, seen.as_ref()?))
            .collect();
        self.first_looks = Some(errands.len());
        for errand in errands {
            self.send(errand);
        }
        self.begin()
    }

    /// Begins the run, if the first looks have returned.
    fn begin(&mut self) -> Result<(), ClusterError> {
        if self.first_looks != Some(0) {
            return Ok(());
        }
        let Some(first) = self.first.take() else { return Ok(()) };
        let machine = self.driver.machine();
        let apps = machine.plan().clone();
        let complete = |(app, seen): (AppIx, Option<Observation>)| {
            let mut seen = seen?;
            self.closer.complete(app, machine.step(app), &mut seen);
            Some(Arc::new(seen))
        };
        let seen = apps.graph.apps().zip(first).map(complete).collect();
        self.tell(Input::Listed { seen, held: self.held })?;
        for app in apps.graph.apps() {
            self.plan_look(app);
        }
        Ok(())
    }

    fn looked_closer(&mut self, sight: Sight) -> Result<(), ClusterError> {
        let app = sight.app;
        self.closer.take(sight);
        if let Some(left) = self.first_looks.as_mut().filter(|_| self.first.is_some()) {
            *left -= 1;
            return self.begin();
        }
        let Some(before) = self.driver.seen(app) else { return Ok(()) };
        let mut seen = before.clone();
        self.closer.complete(app, self.driver.machine().step(app), &mut seen);
        if seen != *before {
            let Observation { lagging, unmet, .. } = seen;
            self.tell(Input::Found { app, lagging, unmet })?;
        }
        self.plan_look(app);
        Ok(())
    }

    fn plan_look(&mut self, app: AppIx) {
        if let Some(seen) = self.driver.seen(app) {
            self.closer.plan(Instant::now(), app, self.driver.machine().step(app), seen);
        }
    }

    /// Sends for what is due.
    fn look_closer(&mut self) {
        while let Some(app) = self.closer.due(Instant::now()) {
            let Some(seen) = self.driver.seen(app) else { continue };
            let errand = self.closer.begin(app, seen);
            self.send(errand);
        }
    }

    fn send(&self, errand: Errand) {
        let (hands, returned) = (self.hands.clone(), self.returned.clone());
        let plan = self.driver.machine().plan().clone();
        tokio::spawn(async move {
            let app = &plan.app(errand.app).app;
            hands.look_closer(errand, app, &returned).await;
        });
    }

    fn tell(&mut self, input: Input) -> Result<(), ClusterError> {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now = Time::from_millis(millis);
        let Output { events, effects } = self.driver.step(now, input).map_err(|illegal| {
            let what = "the run contradicts itself, so it was stopped";
            ClusterError::new(Kind::Failed, what, illegal.to_string())
                .hint("this is a mistake in Tiphys: please report it with the command")
        })?;
        for event in events {
            if let Some(app) = event.app() {
                self.announcer.announce(&event, self.hands.reference(app));
                self.thaw_what_is_frozen(&event, app);
                if let Some(warning) = self.behind(&event, app) {
                    (self.news)(Told::Warning(warning));
                }
            }
            (self.events)(now, event);
        }
        for effect in effects {
            let (hands, returned) = (self.hands.clone(), self.returned.clone());
            let app = effect.app();
            let name = self.driver.machine().plan().app(app).app.name.clone();
            tokio::spawn(async move { hands.carry_out(effect, &name, &returned).await });
        }
        Ok(())
    }

    fn thaw_what_is_frozen(&self, event: &Event, app: AppIx) {
        if let Event::HeldUp { why: HeldUp::Operation { by: Initiator::Automated }, .. } = event {
            let name = self.driver.machine().plan().app(app).app.name.clone();
            let hands = self.hands.clone();
            tokio::spawn(async move { hands.thaw(app, name.as_str()).await });
        }
    }

    /// What lies outside the scope is verified, not deployed: it may be Healthy and yet not what
    /// its source says.
    fn behind(&self, event: &Event, app: AppIx) -> Option<String> {
        let planned = self.driver.machine().plan().app(app);
        let seen = self.driver.seen(app)?;
        let verified = planned.role == Role::Verify && matches!(event, Event::Done { .. });
        let behind = !seen.compared_to_spec || !seen.is_synced(&planned.app.tolerate_drift);
        (verified && behind).then(|| {
            let name = &planned.app.name;
            format!(
                "`{name}` lies outside the scope and is Healthy, but {}: what runs is not its \
                 source at {}",
                seen.sync, seen.revisions
            )
        })
    }
}

fn ended() -> ClusterError {
    ClusterError::new(Kind::Failed, "the watch on Applications has ended", "it should never")
}
