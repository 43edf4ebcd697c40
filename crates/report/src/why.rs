//! Why an app is as it is: the chain of reasons, the questions of the gate, evidence, what next.

use std::fmt;

use tiphys_assess::status::{Answer, AppStatus, Check, State};
use tiphys_run::Evidence;

use crate::columns::{Align, Cell, columns};
use crate::harmless::one_line;
use crate::status::{since, style};
use crate::style::{BAD, FAINT, GOOD, MARK, STRONG, WARNING, paint};

/// How much of what was seen is shown next to a question.
const SEEN: usize = 80;

/// What is known about an app and about the root cause of its trouble.
pub struct WhyReport<'a> {
    pub app: &'a AppStatus,
    /// From what it depends on to the root cause, each with its own state.
    pub chain: Vec<&'a AppStatus>,
    /// None if there is no Application.
    pub checks: Option<&'a [Check]>,
    /// About the root cause, or about the app if it is one.
    pub evidence: Option<&'a Evidence>,
    pub next: &'a str,
}

impl fmt::Display for WhyReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", line("", self.app))?;
        for app in &self.chain {
            writeln!(f, "{}", line("  because ", app))?;
        }
        if let Some(checks) = self.checks {
            writeln!(f, "\nthe gate of {}:", self.app.name)?;
            for line in questions(checks) {
                writeln!(f, "  {line}")?;
            }
        }
        let about = self.chain.last().unwrap_or(&self.app);
        let unsaid = self.evidence.map(|evidence| unsaid(evidence, about.cause.as_deref()));
        if let Some(unsaid) = unsaid.filter(|unsaid| *unsaid != Evidence::default()) {
            writeln!(f, "\nevidence for {}:", about.name)?;
            for line in evidence_lines(&unsaid) {
                writeln!(f, "  {line}")?;
            }
        }
        writeln!(f, "\n{} {}", paint(STRONG, "next:"), one_line(self.next))
    }
}

/// Without what stands in the first lines and in the gate: it need not be said again.
fn unsaid(evidence: &Evidence, cause: Option<&str>) -> Evidence {
    let said = |text: &str| cause.is_some_and(|cause| cause.contains(text.trim_end_matches('…')));
    // `ComparisonError: MESSAGE`
    let is_said = |message: &str| {
        said(message) || message.split_once(": ").is_some_and(|(_, message)| said(message))
    };
    // `Kind/name: Reason MESSAGE`
    let is_news = |event: &&String| {
        let message = event.split_once(": ").and_then(|(_, rest)| rest.split_once(' '));
        message.is_none_or(|(_, message)| !said(message))
    };
    Evidence {
        health: None,
        message: evidence.message.clone().filter(|message| !is_said(message)),
        events: evidence.events.iter().filter(is_news).cloned().collect(),
        ..evidence.clone()
    }
}

fn line(lead: &str, app: &AppStatus) -> String {
    let word = paint(style(app.state), predicate(app.state));
    let name = paint(STRONG, app.name.as_str());
    match &app.cause {
        Some(cause) => {
            let since = since(app.ailing_since());
            format!("{lead}{name} {word}{since}: {}", one_line(cause))
        }
        None if app.state == State::Done => format!("{lead}{name} {word}: nothing is wrong"),
        None => format!("{lead}{name} {word}"),
    }
}

/// A state in a sentence.
fn predicate(state: State) -> &'static str {
    match state {
        State::Failed => "has failed",
        State::Unhealthy => "is unhealthy",
        State::Drifted => "has drifted",
        State::Absent => "is absent",
        State::Removing => "is being removed",
        State::Converging => "is converging",
        State::Syncing => "is syncing",
        State::Waiting => "is waiting",
        State::Done => "is done",
    }
}

fn questions(checks: &[Check]) -> Vec<String> {
    let rows: Vec<[Cell; 4]> = checks
        .iter()
        .zip(1..)
        .map(|(check, number)| {
            let colour = match check.answer {
                Answer::Yes => GOOD,
                Answer::No => BAD,
                Answer::Unknown => WARNING,
            };
            [
                Cell::new(format!("{number}"), FAINT),
                Cell::new(check.answer.as_str(), colour),
                check.question.into(),
                Cell::new(cut(&one_line(&check.seen)), FAINT),
            ]
        })
        .collect();
    columns([Align::Left; 4], &rows)
}

/// The whole of a long message stands above.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SEEN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What was seen, one thing a line, what it means first.
pub(crate) fn evidence_lines(evidence: &Evidence) -> Vec<String> {
    let entry = |word: &str, text: &str| format!("{} {}", paint(FAINT, word), one_line(text));
    let mut lines = Vec::new();
    if let Some(likely) = &evidence.likely {
        lines.push(format!("{} {}", paint(MARK, "likely:"), one_line(likely)));
    }
    match (&evidence.health, &evidence.message) {
        (Some(health), Some(message)) => lines.push(format!("{health}, {}", one_line(message))),
        (Some(health), None) => lines.push(health.to_string()),
        (None, Some(message)) => lines.push(one_line(message)),
        (None, None) => {}
    }
    lines.extend(evidence.resource.iter().map(|text| entry("worst:", text)));
    lines.extend(evidence.drifted.iter().map(|text| format!("drifted {}", one_line(text))));
    lines.extend(evidence.events.iter().map(|text| entry("event:", text)));
    lines.extend(evidence.logs.iter().map(|text| entry("log:", text)));
    lines.extend(evidence.unseen.iter().map(|text| entry("unavailable:", text)));
    lines
}

#[cfg(test)]
mod tests {
    use tiphys_model::{AppName, Health};

    use super::*;

    fn app(name: &str, state: State, cause: Option<&str>) -> AppStatus {
        AppStatus {
            name: AppName::parse(name).unwrap(),
            state,
            health: None,
            sync: None,
            revision: None,
            since: None,
            waiting_for: Vec::new(),
            cause: cause.map(str::to_owned),
            because: Vec::new(),
            tolerated: Vec::new(),
        }
    }

    fn plain(text: &impl ToString) -> String {
        let styled = text.to_string();
        let mut parts = styled.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn reasons_come_first_and_what_to_do_last() {
        let web = app("web", State::Waiting, Some("a run has to sync it"));
        let mut db = app("db", State::Unhealthy, Some("it is Degraded: too slow"));
        db.since = "2026-11-15T12:00:00Z".parse().ok();
        let check =
            |question, answer, seen: &str| Check { question, answer, seen: seen.to_owned() };
        let checks = [
            check("is it Synced?", Answer::No, &"OutOfSync ".repeat(20)),
            check("is it Healthy?", Answer::Yes, "Healthy"),
            check("have controllers seen it?", Answer::Unknown, "the resources were not read"),
        ];
        let evidence = Evidence {
            health: Some(Health::Degraded),
            message: Some("too slow".into()),
            drifted: vec!["Deployment/db: spec.replicas is 1 and should be 3".to_owned()],
            resource: Some("Deployment/db is Degraded".to_owned()),
            events: vec!["Pod/db-1: Unhealthy Readiness probe failed".to_owned()],
            logs: vec!["panic:\u{7}\tno disk".to_owned()],
            likely: Some("a probe fails".to_owned()),
            unseen: vec!["the log of Pod/db-2: forbidden".to_owned()],
        };
        let report = WhyReport {
            app: &web,
            chain: vec![&db],
            checks: Some(&checks),
            evidence: Some(&evidence),
            next: "`tiphys deploy`",
        };
        insta::assert_snapshot!("why_chain", plain(&report));
    }

    #[test]
    fn nothing_is_said_twice() {
        let evidence = Evidence {
            health: Some(Health::Healthy),
            message: Some("ComparisonError: no YAML".into()),
            events: ["Job/a: SyncFailed no Y…", "Job/b: SyncFailed no room"]
                .map(str::to_owned)
                .into(),
            ..Evidence::default()
        };
        let unsaid = unsaid(&evidence, Some("it cannot be compared: no YAML"));
        assert_eq!((unsaid.health, unsaid.message), (None, None));
        assert_eq!(unsaid.events, ["Job/b: SyncFailed no room"]);
    }

    #[test]
    fn of_what_is_well_there_is_little_to_say() {
        let web = app("web", State::Done, None);
        let (chain, next) = (Vec::new(), "nothing");
        let report = WhyReport { app: &web, chain, checks: None, evidence: None, next };
        assert_eq!(plain(&report), "web is done: nothing is wrong\n\nnext: nothing\n");
    }
}
