//! `tiphys deploy`: the platform on a real cluster.

mod dry_run;

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tiphys_cluster::{Access, Check, Deploy, News};
use tiphys_model::{Exit, Plan};
use tiphys_plan::Reach;
use tiphys_run::{Action, EventLine, Recorder, RunView, Time, Verdict};

use crate::args::{ClusterArgs, DeployArgs};
use crate::commands::plan::plan_reaching;
use crate::failure::Failure;
use crate::stage::Stage;
use crate::{committed, input, output, runtime};

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(100);

impl ClusterArgs {
    pub(crate) fn access(&self) -> Access {
        Access { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

pub(crate) fn run(args: &DeployArgs) -> Result<Exit, Failure> {
    let platform = Arc::new(input::own_platform(args.platform.file.as_deref())?);
    let reach = if args.with_dependencies { Reach::WithDependencies } else { Reach::Exactly };
    let mut plan = plan_reaching(&platform, &args.platform.scope, reach)?;
    check_digest(&plan, args.plan.as_deref())?;
    // After the digest: how long somebody waits today does not make another plan.
    plan.policies.timeout = args.timeout.unwrap_or(plan.policies.timeout);
    let plan = Arc::new(plan);
    if args.dry_run {
        return dry_run::run(args, &platform, &plan);
    }
    let events = args.events.as_ref().map(File::create).transpose().map_err(Failure::Output)?;
    let mut display = Display {
        stage: Stage::new(args.output),
        view: RunView::new(&plan),
        plan: plan.clone(),
        recorder: None,
        began: Instant::now(),
        events,
    };
    let (sender, news) = channel();
    let access = args.cluster.access();
    let check = committed_check(args);
    // The run has a thread of its own: whoever is slow to read what it tells cannot hold it up.
    let run = thread::spawn(move || {
        runtime::block_on(async {
            let client = access.client().await?;
            let place = access.place();
            let deploy = Deploy { client, place, platform, plan, identity: identity(), check };
            deploy.run(&|news| sender.send(news).unwrap_or_default()).await
        })
    });
    display.show(&news)?;
    let verdict = run.join().map_err(|_| Failure::Bug("the run panicked".to_owned()))?;
    display.close(verdict?, args)
}

fn check_digest(plan: &Plan, wanted: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    let digest = plan.digest.as_str();
    let bare = wanted.strip_prefix("sha256:").unwrap_or(wanted);
    if bare.len() >= 12 && digest["sha256:".len()..].starts_with(bare) {
        return Ok(());
    }
    Err(Failure::Plan { wanted: wanted.to_owned(), found: digest.to_owned() })
}

/// Compares the platform file with the commit that is deployed, unless that is not wanted.
fn committed_check(args: &DeployArgs) -> Check {
    if args.allow_uncommitted {
        return Box::new(|_| Ok(()));
    }
    let file = args.platform.file.clone().unwrap_or_else(|| input::DEFAULT.into());
    Box::new(move |revisions| {
        // The root app has one source, unless somebody else configured it.
        revisions.0.first().map_or(Ok(()), |revision| committed::check(&file, revision))
    })
}

/// Who holds the Lease, for people who find it taken.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "some machine" } else { host.trim() };
    format!("tiphys on {host}, pid {}, since {:.0}", std::process::id(), Timestamp::now())
}

/// Shows what a run tells.
struct Display {
    stage: Stage,
    plan: Arc<Plan>,
    view: RunView,
    recorder: Option<Recorder>,
    began: Instant,
    events: Option<File>,
}

impl Display {
    /// Until there is nothing more to show.
    fn show(&mut self, news: &Receiver<News>) -> Result<(), Failure> {
        loop {
            match news.recv_timeout(FRAME) {
                Ok(News::Note(text)) => output::note(&text),
                Ok(News::Began { run, revisions }) => {
                    output::note(&format!("the platform's revision is {revisions}"));
                    self.began = Instant::now();
                    let mut recorder =
                        Recorder::new(self.plan.clone(), Action::Deploy, Timestamp::now());
                    let line = recorder.start(run, "local", None);
                    self.recorder = Some(recorder);
                    self.line(&line)?;
                }
                Ok(News::Event(time, event)) => {
                    let recorder = self.recorder.as_mut();
                    if let Some(line) = recorder.and_then(|r| r.record(time, &event)) {
                        self.line(&line)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.recorder.is_some() {
                        let now = Time::START + self.began.elapsed();
                        self.stage.draw(&self.plan, &self.view, now)?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn line(&mut self, line: &EventLine) -> Result<(), Failure> {
        if let Some(file) = &mut self.events {
            let written = serde_json::to_writer(&mut *file, line).map_err(std::io::Error::from);
            written.and_then(|()| writeln!(file)).map_err(Failure::Output)?;
        }
        self.view.fold(line);
        self.stage.show(line)
    }

    fn close(&mut self, verdict: Verdict, args: &DeployArgs) -> Result<Exit, Failure> {
        if self.recorder.is_some() {
            let resume = format!("tiphys deploy{}", args.platform.repeat());
            self.stage.close(&self.view, &resume)?;
        }
        Ok(verdict.exit())
    }
}
