//! Showing a run on a cluster while it goes on.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tiphys_cluster::{Access, Client};
use tiphys_engine::{Leftover, RunUpdate, Signals};
use tiphys_model::{Exit, Scope};
use tiphys_report::{Ending, Outcomes, one_line};
use tiphys_run::{Action, RunFinished, RunStarted, RunView, Time};
use tokio::sync::oneshot;

use crate::args::RunFormat;
use crate::failure::Failure;
use crate::record::{Record, Shown};
use crate::report_files::ReportFiles;
use crate::stage::Stage;
use crate::{output, runtime};

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Shows what a run tells. Nothing that goes wrong here ends the run.
pub(crate) struct Display {
    stage: Stage,
    view: RunView,
    began: Instant,
    /// What could not be written besides what is shown.
    unwritten: Vec<String>,
}

impl Display {
    pub(crate) fn new(format: RunFormat) -> Self {
        Display {
            stage: Stage::new(format),
            view: RunView::default(),
            began: Instant::now(),
            unwritten: Vec::new(),
        }
    }

    /// Runs, records and shows that, until there is nothing more to show. Each has a thread of its
    /// own: a slow disk does not hold up the run, and a slow terminal neither the run nor the
    /// record.
    pub(crate) fn follow<T: Send + 'static>(
        &mut self,
        record: Record,
        run: impl FnOnce(&dyn Fn(RunUpdate)) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (tell, news) = channel();
        let (show, shown) = channel();
        let run = thread::spawn(move || run(&|news| tell.send(news).unwrap_or_default()));
        let record = thread::spawn(move || record.keep(&news, &show));
        self.show(&shown);
        self.unwritten = join(record)?;
        join(run)?
    }

    /// Shows a run that is not this process's own, while `watch` tells what it says. Nothing, if a signal
    /// ends that first: the run goes on.
    pub(crate) fn watch<T: Send + 'static>(
        &mut self,
        access: &Access,
        watch: impl AsyncFnOnce(Client, &dyn Fn(Shown)) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let (show, shown) = channel();
        let access = access.clone();
        let watching = thread::spawn(move || {
            let tell = |news| show.send(news).unwrap_or_default();
            runtime::block_on(async {
                let mut signals = Signals::listen()?;
                let client = access.client().await?;
                tokio::select! {
                    ended = watch(client, &tell) => ended.map(Some),
                    _ = signals.next() => Ok(None),
                }
            })
        });
        self.show(&shown);
        join(watching)?
    }

    fn show(&mut self, shown: &Receiver<Shown>) {
        loop {
            match shown.recv_timeout(FRAME) {
                Ok(Shown::Note(text)) => self.stage.aside(|| output::note(&text)),
                Ok(Shown::Warning(text)) => self.stage.aside(|| output::warning(&text)),
                Ok(Shown::Error(text)) => {
                    self.stage.aside(|| output::aside(&format!("error: {}\n", one_line(&text))));
                }
                Ok(Shown::Line(line)) => {
                    if self.view.started.is_none() {
                        self.began = Instant::now();
                    }
                    self.view.fold(&line);
                    self.stage.show(&line);
                }
                Ok(Shown::Ask { leftovers, answer }) => ask(&leftovers, answer),
                Err(RecvTimeoutError::Timeout) => {
                    if self.view.started.is_some() {
                        self.stage.draw(&self.view, Time::START + self.began.elapsed());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The summary; `again` is the command that resumes.
    pub(crate) fn close(&mut self, again: &str) {
        if self.view.started.is_some() {
            self.stage.close(&self.view, Ending::Resume(again));
        }
    }

    /// How the run that was shown ended.
    pub(crate) fn exit(&self) -> Exit {
        self.view.finished.as_ref().map_or(Exit::Failed, RunFinished::exit)
    }

    /// The summary of a run that is not this process's own.
    pub(crate) fn close_followed(&mut self, flags: &str) {
        let Some(RunStarted { platform, scope, action, .. }) = &self.view.started else { return };
        let scope = match scope {
            Scope::Platform => String::new(),
            Scope::Parts(_) => format!(" --scope '{scope}'"),
        };
        let again = match action {
            Action::Deploy => format!("tiphys deploy --platform {platform}{flags}{scope}"),
            Action::Teardown => format!("tiphys teardown --platform {platform}{scope}"),
        };
        if self.view.finished.is_some() {
            self.stage.close(&self.view, Ending::Resume(&again));
        }
    }

    /// Text for people: below the run, or, beside JSON, where people look.
    pub(crate) fn say(&mut self, text: &str) {
        if self.stage.is_json() {
            output::aside(&format!("{text}\n"));
        } else {
            self.stage.say(text);
        }
    }

    /// Writes what the run came to for each app, or why there was none; how the program ends then.
    pub(crate) fn report<T>(
        &self,
        files: ReportFiles,
        action: Action,
        ended: &Result<T, Failure>,
        exit: Exit,
    ) -> Exit {
        match (Outcomes::of_run(&self.view), ended) {
            (Some(outcomes), _) => files.write(&outcomes, exit),
            (None, Err(failure)) => {
                files.write_failure(action.as_str(), failure);
                exit
            }
            (None, Ok(_)) => exit,
        }
    }

    /// Tells what was not written, and how the program ends.
    pub(crate) fn end(&self, exit: Exit) -> Exit {
        for unwritten in &self.unwritten {
            output::warning(unwritten);
        }
        self.stage.end(exit)
    }
}

fn join<T>(thread: JoinHandle<T>) -> Result<T, Failure> {
    thread.join().map_err(|_| Failure::Bug("the run panicked".to_owned()))
}

/// Asks on the terminal, in a thread of its own: who does not answer can still interrupt.
fn ask(leftovers: &[Leftover], answer: oneshot::Sender<bool>) {
    let certain = leftovers.iter().filter(|leftover| leftover.certain);
    let list: String =
        certain.map(|leftover| format!("  {}\n", one_line(&leftover.to_string()))).collect();
    output::aside(&format!("Left behind by the platform:\n{list}Remove these? [y/N] "));
    thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let yes = read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str());
        answer.send(yes).unwrap_or_default();
    });
}

/// Whether somebody is there who can be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
