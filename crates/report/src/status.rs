//! The status of a platform, as people read it: root causes first.

mod automation;

use std::fmt;

use anstyle::Style;
use tiphys_assess::status::{AppStatus, LastRun, RootCause, State, Status};
use tiphys_model::{AppName, Health, Scope, SyncStatus};

use crate::clock::took;
use crate::columns::{Align, Cell, columns};
use crate::harmless::one_line;
use crate::lines::chain;
use crate::style::{BAD, FAINT, GOOD, MARK, STRONG, WARNING, paint};

/// How many names are listed before the rest is counted.
const NAMES: usize = 5;
/// A commit is known by as much.
const REVISION: usize = 12;

/// Everything: phase, who decides, root causes, and each app.
pub struct StatusReport<'a>(pub &'a Status);

impl fmt::Display for StatusReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.0;
        writeln!(
            f,
            "platform {}: phase {}, {}; authority {}",
            paint(STRONG, status.platform.as_str()),
            status.phase.number(),
            status.phase.as_str(),
            status.authority.as_str(),
        )?;
        hold(f, status)?;
        run(f, status)?;
        last_run(f, status)?;
        if let Some(status) = &status.deploy_loop {
            automation::deploy_loop(f, status)?;
        }
        automation::schedules(f, &status.schedules)?;
        automation::webhooks(f, &status.webhooks)?;
        causes(f, &status.root_causes)?;
        bypasses(f, status)?;
        writeln!(f)?;
        for line in app_table(&status.apps) {
            writeln!(f, "{line}")?;
        }
        leftovers(f, status)?;
        to_see_more(f, status)
    }
}

/// Whether the platform is well, and what is not, root cause first.
pub struct ValidateReport<'a>(pub &'a Status);

impl fmt::Display for ValidateReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.0;
        let platform = paint(STRONG, status.platform.as_str());
        let unwell = status.apps.iter().filter(|app| app.state != State::Done).count();
        let all = apps(status.apps.len());
        if unwell == 0 {
            writeln!(f, "platform {platform} is {}: {all}", paint(GOOD, "healthy"))?;
        } else {
            let word = paint(BAD, "not healthy");
            writeln!(f, "platform {platform} is {word}: {unwell} of {all}")?;
        }
        for app in status.apps.iter().filter(|app| !app.tolerated.is_empty()) {
            let tolerated = one_line(&app.tolerated.join(", "));
            let warning = paint(WARNING, "warning:");
            writeln!(f, "{warning} {}: {tolerated} is OutOfSync (tolerated)", app.name)?;
        }
        causes(f, &status.root_causes)?;
        followers(f, status)?;
        to_see_more(f, status)
    }
}

/// A change of an app, on one line.
#[must_use]
pub fn status_line(app: &AppStatus) -> String {
    let word = paint(style(app.state), app.state.as_str());
    let because = if app.because.is_empty() {
        String::new()
    } else {
        format!(" because of {}", chain(&app.because))
    };
    let cause = app.cause.as_deref().map(|cause| format!(": {}", one_line(cause)));
    format!("{} {word}{because}{}", app.name, cause.unwrap_or_default())
}

/// One colour for what is good, one for what is bad, one for what is on its way.
pub(crate) fn style(state: State) -> Style {
    match state {
        State::Failed | State::Unhealthy | State::Absent => BAD,
        State::Drifted | State::Removing | State::Waiting => WARNING,
        State::Converging | State::Syncing => MARK,
        State::Done => GOOD,
    }
}

fn hold(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let hold = &status.hold;
    if hold.apps.is_empty() {
        return Ok(());
    }
    let by = hold.run.as_deref().map(|run| format!(" by run {}", one_line(run)));
    writeln!(
        f,
        "{} automated sync is denied for {}{}: {}",
        paint(WARNING, "held:"),
        apps(hold.apps.len()),
        by.unwrap_or_default(),
        names(&hold.apps),
    )
}

fn run(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let Some(run) = &status.run else { return Ok(()) };
    let (action, holder) = (one_line(&run.action), one_line(&run.holder));
    if run.expired {
        let word = paint(WARNING, "abandoned:");
        return writeln!(f, "{word} {action} by {holder}; run it again to resume");
    }
    writeln!(f, "{} {action} by {holder}", paint(MARK, "in progress:"))
}

fn last_run(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let Some(LastRun { run, action, scope, started, state, took_ms }) = &status.last_run else {
        return Ok(());
    };
    let of = match scope {
        Scope::Platform => String::new(),
        scope @ Scope::Parts(_) => format!(" of {scope}"),
    };
    let (state, run) = (one_line(state), one_line(run));
    let took = took_ms.map(|millis| format!(" after {}", took(millis))).unwrap_or_default();
    let started = started.strftime("%Y-%m-%d %H:%M:%SZ");
    let label = paint(FAINT, "last run:");
    writeln!(f, "{label} {}{of} {state}{took}, began {started} ({run})", action.as_str())
}

fn causes(f: &mut fmt::Formatter<'_>, causes: &[RootCause]) -> fmt::Result {
    if !causes.is_empty() {
        writeln!(f)?;
    }
    for root in causes {
        let word = paint(style(root.state), root.state.as_str());
        let name = paint(STRONG, root.app.as_str());
        writeln!(f, "{word} {name}{}: {}", since(root.since), one_line(&root.cause))?;
        if !root.affects.is_empty() {
            writeln!(f, "  {} {}", paint(FAINT, "affects:"), names(&root.affects))?;
        }
    }
    Ok(())
}

/// ` since TIME`, where that is known.
pub(crate) fn since(time: Option<impl fmt::Display>) -> String {
    time.map(|time| format!(" since {time}")).unwrap_or_default()
}

/// What is not well because something else is not.
fn followers(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let rows: Vec<[Cell; 3]> = status
        .apps
        .iter()
        .filter(|app| !app.because.is_empty())
        .map(|app| {
            [
                Cell::new(app.state.as_str(), style(app.state)),
                app.name.as_str().into(),
                format!("< {}", chain(&app.because)).into(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    columns([Align::Left; 3], &rows).iter().try_for_each(|line| writeln!(f, "{line}"))
}

fn bypasses(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    if !status.bypasses.is_empty() {
        writeln!(f)?;
    }
    for bypass in &status.bypasses {
        let (app, by) = (one_line(&bypass.app), one_line(&bypass.by));
        let when = match &bypass.finished_at {
            _ if bypass.running => "is in progress".to_owned(),
            Some(at) => format!("ended at {at}"),
            None => "has ended".to_owned(),
        };
        writeln!(f, "{} an operation by {by} on {app} {when}", paint(WARNING, "bypass:"))?;
    }
    Ok(())
}

fn to_see_more(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let next = status.root_causes.first().map(|root| format!("tiphys why {}", root.app));
    next.map_or(Ok(()), |next| writeln!(f, "\nfor details: {}", paint(STRONG, &next)))
}

fn leftovers(f: &mut fmt::Formatter<'_>, status: &Status) -> fmt::Result {
    let all = status.leftovers.as_deref().unwrap_or_default();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{} by apps that were removed:", paint(WARNING, "left in the cluster"))?;
    all.iter().try_for_each(|leftover| writeln!(f, "  {}", one_line(leftover)))
}

fn app_table(apps: &[AppStatus]) -> Vec<String> {
    let head = ["APP", "STATE", "HEALTH", "SYNC", "REVISION", "BECAUSE"];
    let head = head.map(|text| Cell::new(text, FAINT));
    let rows = apps.iter().map(|app| {
        let revision: String =
            app.revision.as_deref().unwrap_or("-").chars().take(REVISION).collect();
        let because = if app.because.is_empty() {
            String::new()
        } else {
            format!("< {}", chain(&app.because))
        };
        [
            app.name.as_str().into(),
            Cell::new(app.state.as_str(), style(app.state)),
            app.health.map_or("-", Health::as_str).into(),
            app.sync.map_or("-", sync_word).into(),
            Cell::new(revision, FAINT),
            because.into(),
        ]
    });
    let rows: Vec<[Cell; 6]> = std::iter::once(head).chain(rows).collect();
    columns([Align::Left; 6], &rows)
}

fn sync_word(sync: SyncStatus) -> &'static str {
    match sync {
        SyncStatus::Synced => "Synced",
        SyncStatus::OutOfSync => "OutOfSync",
        SyncStatus::Unknown => "Unknown",
    }
}

fn apps(count: usize) -> String {
    if count == 1 { "1 app".to_owned() } else { format!("{count} apps") }
}

fn names(all: &[AppName]) -> String {
    let shown: Vec<&str> = all.iter().take(NAMES).map(AppName::as_str).collect();
    let rest = all.len().saturating_sub(NAMES);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use tiphys_assess::deploy_loop::News;
    use tiphys_assess::deploy_loop::commit::{CommitState, Told};
    use tiphys_assess::deploy_loop::validation::Validated;
    use tiphys_assess::status::{
        Authority, Bypass, HoldStatus, LoopStatus, PlatformPhase, RunStatus, ScheduleStatus,
        WebhookStatus,
    };
    use tiphys_model::PlatformName;
    use tiphys_model::platform::Hold;
    use tiphys_run::Action;

    use super::*;

    fn name(text: &str) -> AppName {
        AppName::parse(text).unwrap()
    }

    fn app(text: &str, state: State, because: &[&str]) -> AppStatus {
        let done = state == State::Done;
        AppStatus {
            name: name(text),
            state,
            health: (state != State::Absent).then_some(Health::Healthy),
            sync: (state != State::Absent).then_some(SyncStatus::Synced),
            revision: Some("0123456789abcdef0123".to_owned()),
            since: None,
            waiting_for: because.iter().map(|text| name(text)).take(1).collect(),
            cause: (!done).then(|| format!("{text} has\na reason")),
            because: because.iter().map(|text| name(text)).collect(),
            tolerated: if text == "docs" { vec!["Secret/noise".into()] } else { Vec::new() },
        }
    }

    fn broken() -> Status {
        Status {
            platform: PlatformName::parse("demo").unwrap(),
            phase: PlatformPhase::Orchestration,
            authority: Authority::Orchestration,
            hold: HoldStatus {
                policy: Hold::DuringRun,
                run: Some("0123-4".to_owned()),
                apps: ["db", "api", "web", "a", "b", "c", "d"].map(name).into(),
            },
            run: Some(RunStatus {
                action: "deploy".to_owned(),
                holder: "somebody".to_owned(),
                expired: true,
            }),
            apps: vec![
                app("db", State::Failed, &[]),
                app("api", State::Waiting, &["db"]),
                app("web", State::Absent, &["api", "db"]),
                app("docs", State::Done, &[]),
            ],
            bypasses: vec![Bypass {
                app: "docs".to_owned(),
                by: "alice".into(),
                running: true,
                finished_at: None,
            }],
            root_causes: vec![RootCause {
                app: name("db"),
                state: State::Failed,
                cause: "db has\na reason".to_owned(),
                since: None,
                affects: vec![name("api"), name("web")],
            }],
            last_run: Some(LastRun {
                run: "0123-3".to_owned(),
                action: Action::Deploy,
                scope: "stack:data".parse().unwrap(),
                started: "2026-11-18T12:00:00Z".parse().unwrap(),
                state: "failed".to_owned(),
                took_ms: Some(62_000),
            }),
            deploy_loop: Some(LoopStatus {
                told: Some(Told {
                    revision: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                    state: CommitState::Failed,
                    refused: Some("401 Unauthorized:\nBad credentials".to_owned()),
                }),
                validated: BTreeMap::from([(
                    "certificates".to_owned(),
                    Validated {
                        change: "0a1b".to_owned(),
                        workflow: "tiphys-validate-0123456789".to_owned(),
                        at: "2026-11-18T04:00:00Z".parse().unwrap(),
                    },
                )]),
                ..LoopStatus::new(None, None, Timestamp::UNIX_EPOCH)
            }),
            schedules: vec![ScheduleStatus {
                name: "nightly".to_owned(),
                action: "validate",
                scope: "stack:data".parse().unwrap(),
                last: Some("2026-11-18T03:00:00Z".parse().unwrap()),
                next: Some("2026-11-19T03:00:00Z".parse().unwrap()),
            }],
            webhooks: vec![WebhookStatus {
                name: "push".to_owned(),
                provider: "github",
                address: "http://demo-push-01234-eventsource-svc.tiphys-events:12000/push"
                    .to_owned(),
                last: Some("2026-11-18T03:00:00Z".parse().unwrap()),
                missed: Some(News {
                    revision: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                    at: "2026-11-18T04:00:00Z".parse().unwrap(),
                }),
            }],
            leftovers: Some(vec!["ConfigMap/a/b: `gone` has applied it".to_owned()]),
        }
    }

    fn well() -> Status {
        let (bypasses, root_causes) = (Vec::new(), Vec::new());
        let apps = vec![app("db", State::Done, &[]), app("docs", State::Done, &[])];
        let hold = HoldStatus { policy: Hold::DuringRun, run: None, apps: Vec::new() };
        let (phase, authority) = (PlatformPhase::SteadyState, Authority::ArgoCd);
        let leftovers = Some(Vec::new());
        Status {
            phase,
            authority,
            hold,
            run: None,
            last_run: None,
            deploy_loop: None,
            schedules: Vec::new(),
            webhooks: Vec::new(),
            apps,
            bypasses,
            root_causes,
            leftovers,
            ..broken()
        }
    }

    pub(super) fn plain(text: &impl ToString) -> String {
        let styled = text.to_string();
        let mut parts = styled.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn a_status_begins_with_the_root_cause() {
        insta::assert_snapshot!("status_broken", plain(&StatusReport(&broken())));
    }

    #[test]
    fn a_platform_that_is_well_has_little_to_tell() {
        insta::assert_snapshot!("status_well", plain(&StatusReport(&well())));
    }

    #[test]
    fn validate_says_what_is_not_well() {
        insta::assert_snapshot!("validate_broken", plain(&ValidateReport(&broken())));
        insta::assert_snapshot!("validate_well", plain(&ValidateReport(&well())));
    }

    #[test]
    fn a_change_is_one_line() {
        let web = app("web", State::Absent, &["api", "db"]);
        assert_eq!(plain(&status_line(&web)), "web absent because of api < db: web has a reason");
        assert_eq!(plain(&status_line(&app("web", State::Done, &[]))), "web done");
    }
}
