//! `tiphys status`: phase, authority, hold, and where each app is. It changes nothing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_assess::status::{
    LastRun, LoopStatus, ScheduleStatus, Situation, State, Status, WebhookStatus,
};
use tiphys_cluster::{Cause, RequestError};
use tiphys_engine::Leftover;
use tiphys_evidence::Prober;
use tiphys_inspect::status;
use tiphys_install::webhooks;
use tiphys_model::{AppName, Exit, Scope};
use tiphys_report::{RunState, Size, StatusReport, status_line};
use tiphys_run::Signal;
use tiphys_state::deploy_loop::LoopStore;
use tiphys_state::records::{Found, RecordStore};
use tiphys_workflows::Scheduled;

use crate::args::{DocumentFormat, StatusArgs};
use crate::commands::runs::state;
use crate::commands::validate::{Looked, json};
use crate::failure::Failure;
use crate::located::Prefer;
use crate::{output, runtime};

pub(crate) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let looked = Looked::new(&args.look, &args.scope, Prefer::Cluster)?;
    if args.watch {
        return watch(&looked);
    }
    let mut status = looked.status()?;
    status.leftovers = leftovers(&looked)?;
    status.last_run = last_run(&looked, &status)?;
    status.deploy_loop = deploy_loop(&looked)?;
    status.schedules = schedules(&looked)?;
    status.webhooks = webhooks(&looked, &status)?;
    match args.look.output {
        DocumentFormat::Json => json(&status)?,
        DocumentFormat::Text => output::text(|out| write!(out, "{}", StatusReport(&status)))?,
    }
    tell_how_to_clean(args, &looked, &status);
    Ok(Exit::Done)
}

/// What removed apps have left; nothing, if nobody may look.
fn leftovers(looked: &Looked) -> Result<Option<Vec<String>>, Failure> {
    let access = looked.args.cluster.access();
    let found = runtime::block_on(async {
        let client = access.client().await?;
        Ok(status::leftovers(&client, &looked.platform).await)
    })?;
    match found {
        Ok(found) => Ok(Some(found.iter().map(Leftover::to_string).collect())),
        Err(error) => {
            output::note(&format!("cannot look for leftovers of removed apps: {error}"));
            Ok(None)
        }
    }
}

/// What was read; nothing if nobody may read it, or, with a note, if that failed.
fn allowed<T>(found: Result<T, RequestError>, failed: &str) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) => {
            if error.cause() != Cause::Denied {
                output::note(&format!("{failed}: {error}"));
            }
            None
        }
    }
}

/// The newest run that is over; nothing, if nobody may read records.
fn last_run(looked: &Looked, status: &Status) -> Result<Option<LastRun>, Failure> {
    let access = looked.args.cluster.access();
    let namespace = &looked.platform.argocd.namespace;
    let found = runtime::block_on(async {
        let store = RecordStore::new(&access.client().await?);
        Ok(store.list(namespace, Some(&looked.platform.name)).await)
    })?;
    let Some(found) = allowed(found, "cannot read the records of runs") else { return Ok(None) };
    let holder = status.run.as_ref().filter(|run| !run.expired).map(|run| run.holder.as_str());
    let runs = found.into_iter().map(|Found { head, .. }| (state(&head, holder), head));
    let last = runs.into_iter().find(|(state, _)| *state != RunState::Running);
    Ok(last.map(|(state, head)| LastRun {
        state: state.as_str().to_owned(),
        took_ms: head.finished.as_ref().map(|finished| finished.makespan_ms),
        run: head.run,
        action: head.action,
        scope: head.scope,
        started: head.started,
    }))
}

/// How automatic deployments stand; nothing if there are none, or if nobody may look.
fn deploy_loop(looked: &Looked) -> Result<Option<LoopStatus>, Failure> {
    let access = looked.args.cluster.access();
    let platform = &looked.platform;
    let found = runtime::block_on(async {
        let store = LoopStore::new(&access.client().await?);
        Ok(store.get(&platform.argocd.namespace, &platform.name).await)
    })?;
    let found = allowed(found, "cannot tell how automatic deployments stand").flatten();
    Ok(found.and_then(|state| {
        let watched = state.is_watched;
        let status = LoopStatus::new(state.pause, state.seen, Timestamp::now());
        let status = LoopStatus {
            asleep: status.asleep && watched,
            told: state.told,
            validated: state.validated,
            ..status
        };
        // A pause counts for schedules too.
        (watched || status.pause.is_some()).then_some(status)
    }))
}

/// What starts runs at certain times; nothing, if nobody may look.
fn schedules(looked: &Looked) -> Result<Vec<ScheduleStatus>, Failure> {
    let access = looked.args.cluster.access();
    let platform = &looked.platform;
    let found = runtime::block_on(async {
        let client = access.client().await?;
        Ok(tiphys_workflows::schedules(&client, &platform.argocd.namespace, &platform.name).await)
    })?;
    let found = allowed(found, "cannot tell what starts runs").unwrap_or_default();
    let now = Timestamp::now();
    let shown = found.into_iter().map(|Scheduled { name, trigger, last }| ScheduleStatus {
        name,
        action: trigger.action.as_str(),
        next: trigger.at.next(now),
        scope: trigger.scope,
        last,
    });
    Ok(shown.collect())
}

/// What Git servers call; nothing, if nobody may look.
fn webhooks(looked: &Looked, status: &Status) -> Result<Vec<WebhookStatus>, Failure> {
    let access = looked.args.cluster.access();
    let platform = &looked.platform;
    let found = runtime::block_on(async {
        let client = access.client().await?;
        Ok(webhooks::webhooks(&client, &platform.argocd.namespace, &platform.name).await)
    })?;
    let found = allowed(found, "cannot tell what Git servers call").unwrap_or_default();
    let seen = status.deploy_loop.as_ref().and_then(|of_loop| of_loop.seen.as_ref());
    let news = seen.and_then(|seen| seen.news.as_ref());
    let shown = found.into_iter().map(|webhook| {
        let shown = WebhookStatus {
            address: webhook.address(),
            name: webhook.name,
            provider: webhook.provider.as_str(),
            last: webhook.last,
            missed: None,
        };
        shown.noticing(news, webhook.created)
    });
    Ok(shown.collect())
}

/// As long as an app is there, a teardown would remove it as well.
fn tell_how_to_clean(args: &StatusArgs, looked: &Looked, status: &Status) {
    let found = status.leftovers.as_ref().is_some_and(|all| !all.is_empty());
    let gone = status.apps.iter().all(|app| app.state == State::Absent);
    if found && gone && looked.scoped.scope == Scope::Platform {
        let clean = format!("tiphys teardown{} --clean-leftovers", args.look.platform.repeat());
        output::note(&format!("to remove the leftovers: {clean}"));
    }
}

fn watch(looked: &Looked) -> Result<Exit, Failure> {
    let mut view = View::new(looked.args.output);
    let mut failure = None;
    let mut show = |situation: Situation| {
        let status = Status::new(&looked.plan, &looked.scoped, &situation);
        view.show(&status).unwrap_or_else(|error| {
            failure = Some(error);
            false
        })
    };
    let access = looked.args.cluster.access();
    let signal = runtime::block_on(async {
        let client = access.client().await?;
        let prober = Prober::new(client.clone(), access.place());
        Ok(status::follow(&client, &prober, &looked.platform, &looked.plan, &mut show).await?)
    })?;
    match (failure, signal) {
        (Some(failure), _) => Err(failure),
        (None, Some(Signal::Interrupt)) => Ok(Exit::Interrupted),
        (None, Some(Signal::Terminate)) => Ok(Exit::Terminated),
        (None, None) => Ok(Exit::Done),
    }
}

/// How a platform that changes is shown.
enum View {
    /// One document a line.
    Json,
    /// The whole at first, then a line for each app that changes.
    Lines {
        before: Option<BTreeMap<AppName, String>>,
        /// Phase, hold and run, as they were last.
        head: String,
    },
    /// Drawn again in place; so many rows were drawn last.
    Screen { rows: usize },
}

impl View {
    fn new(format: DocumentFormat) -> Self {
        match format {
            DocumentFormat::Json => View::Json,
            DocumentFormat::Text if output::can_redraw() => View::Screen { rows: 0 },
            DocumentFormat::Text => View::Lines { before: None, head: String::new() },
        }
    }

    /// Whether anybody still reads it.
    fn show(&mut self, status: &Status) -> Result<bool, Failure> {
        match self {
            View::Json => output::data_while_read(|mut out| {
                serde_json::to_writer(&mut out, status)?;
                writeln!(out)
            }),
            View::Lines { before, head } => {
                let now: BTreeMap<AppName, String> =
                    status.apps.iter().map(|app| (app.name.clone(), status_line(app))).collect();
                let text = StatusReport(status).to_string();
                let top = text.split("\n\n").next().unwrap_or_default().to_owned();
                let told = match before.replace(now) {
                    None => text,
                    Some(before) => {
                        let lines = status.apps.iter().map(|app| (app, status_line(app)));
                        let news = lines.filter(|(app, line)| before.get(&app.name) != Some(line));
                        let news: String = news.map(|(_, line)| line + "\n").collect();
                        if *head == top { news } else { format!("{top}\n{news}") }
                    }
                };
                *head = top;
                output::text_while_read(0, &told)
            }
            View::Screen { rows } => {
                let (text, drawn) =
                    fitted(&StatusReport(status).to_string(), output::terminal_size());
                output::text_while_read(std::mem::replace(rows, drawn), &text)
            }
        }
    }
}

/// As much as a terminal shows at once, and how many of its rows that takes: what has scrolled
/// away cannot be drawn again.
fn fitted(text: &str, size: Size) -> (String, usize) {
    let (mut shown, mut used) = (String::new(), 0);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let rows = output::rows(output::shown_width(line), size.columns);
        // One for the rest, one for the cursor.
        if used + rows + 2 > size.rows && at + 1 < lines.len() {
            shown += &format!("… and {} more lines\n", lines.len() - at);
            return (shown, used + 1);
        }
        shown += line;
        shown.push('\n');
        used += rows;
    }
    (shown, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_drawn_than_the_terminal_shows() {
        let size = Size { columns: 10, rows: 6 };
        assert_eq!(fitted("a\nb\n", size), ("a\nb\n".to_owned(), 2));
        let long = "a\nb\nc\nd\ne\nf\ng\n";
        assert_eq!(fitted(long, size), ("a\nb\nc\nd\n… and 3 more lines\n".to_owned(), 5));
        let wide = "0123456789012345\nb\nc\n\u{1b}[1md\u{1b}[0m\ne\nf\n";
        assert_eq!(fitted(wide, size).1, 5);
    }
}
