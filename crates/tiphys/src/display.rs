//! Showing a run on a cluster while it goes on.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tiphys_engine::{Leftover, News};
use tiphys_model::Plan;
use tiphys_run::{Action, EventLine, Recorder, RunView, Time};
use tokio::sync::oneshot;

use crate::args::RunFormat;
use crate::failure::Failure;
use crate::output;
use crate::stage::Stage;

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Who holds the Lease, for people who find it taken.
pub(crate) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "some machine" } else { host.trim() };
    format!("tiphys on {host}, pid {}, since {:.0}", std::process::id(), Timestamp::now())
}

/// Shows what a run tells.
pub(crate) struct Display {
    stage: Stage,
    action: Action,
    plan: Arc<Plan>,
    view: RunView,
    recorder: Option<Recorder>,
    began: Instant,
    events: Option<File>,
}

impl Display {
    pub(crate) fn new(
        action: Action,
        plan: &Arc<Plan>,
        format: RunFormat,
        events: Option<&Path>,
    ) -> Result<Self, Failure> {
        Ok(Display {
            stage: Stage::new(format),
            action,
            view: RunView::default(),
            plan: plan.clone(),
            recorder: None,
            began: Instant::now(),
            events: events.map(File::create).transpose().map_err(Failure::Output)?,
        })
    }

    /// Until there is nothing more to show.
    pub(crate) fn show(&mut self, news: &Receiver<News>) -> Result<(), Failure> {
        loop {
            match news.recv_timeout(FRAME) {
                Ok(News::Note(text)) => self.stage.aside(|| output::note(&text))?,
                Ok(News::Warning(text)) => self.stage.aside(|| output::warning(&text))?,
                Ok(News::Began { run, engine, revisions }) => {
                    if let Some(revisions) = revisions {
                        output::note(&format!("the platform's revision is {revisions}"));
                    }
                    self.began = Instant::now();
                    let mut recorder =
                        Recorder::new(self.plan.clone(), self.action, Timestamp::now());
                    let line = recorder.start(run, engine, None);
                    self.recorder = Some(recorder);
                    self.line(&line)?;
                }
                Ok(News::Event(time, event)) => {
                    let recorder = self.recorder.as_mut();
                    if let Some(line) = recorder.and_then(|r| r.record(time, &event)) {
                        self.line(&line)?;
                    }
                }
                Ok(News::Ask { leftovers, answer }) => ask(&leftovers, answer),
                Err(RecvTimeoutError::Timeout) => {
                    if self.recorder.is_some() {
                        let now = Time::START + self.began.elapsed();
                        self.stage.draw(&self.view, now)?;
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

    /// The summary; `again` is the command that resumes.
    pub(crate) fn close(&mut self, again: &str) -> Result<(), Failure> {
        match self.recorder {
            Some(_) => self.stage.close(&self.view, again),
            None => Ok(()),
        }
    }

    /// Text for people: below the run, or, beside JSON, where people look.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Failure> {
        match self.stage {
            Stage::Jsonl => {
                output::error(&format!("{text}\n"));
                Ok(())
            }
            Stage::Lines | Stage::Screen { .. } => self.stage.say(text),
        }
    }
}

/// Asks on the terminal, in a thread of its own: who does not answer can still interrupt.
fn ask(leftovers: &[Leftover], answer: oneshot::Sender<bool>) {
    let certain = leftovers.iter().filter(|leftover| leftover.certain);
    let list: String = certain.map(|leftover| format!("  {leftover}\n")).collect();
    output::error(&format!("Left behind by the platform:\n{list}Remove these? [y/N] "));
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
