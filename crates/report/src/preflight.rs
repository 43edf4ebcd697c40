//! What Phase 0 has found, as people read it: a line for each check, then what to do.

use std::fmt;

use anstyle::Style;
use tiphys_assess::preflight::cluster::Inventory;
use tiphys_assess::preflight::resources::Resources;
use tiphys_assess::preflight::{Check, Outcome, Readiness, Report};

use crate::columns::{Align, Cell, columns};
use crate::harmless::{one_line, width};
use crate::style::{BAD, FAINT, GOOD, STRONG, WARNING, paint};

pub struct PreflightReport<'a> {
    pub report: &'a Report,
    pub skipped: SkippedChecks,
    /// Of the terminal; what is piped is not wrapped.
    pub width: Option<usize>,
}

/// Whether checks that do not apply have a row of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkippedChecks {
    Shown,
    Counted,
}

impl fmt::Display for PreflightReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PreflightReport { report, skipped, width } = self;
        let shown =
            |check: &&Check| *skipped == SkippedChecks::Shown || check.outcome != Outcome::Skipped;
        let rows: Vec<&Check> = report.checks.iter().filter(shown).collect();
        for line in table(&rows, *width) {
            writeln!(f, "{line}")?;
        }
        let left_out = report.checks.len() - rows.len();
        if left_out > 0 {
            let checks = if left_out == 1 { "check does" } else { "checks do" };
            let text = format!("{left_out} {checks} not apply: --all lists them");
            writeln!(f, "{}", paint(FAINT, &text))?;
        }
        if let Some(inventory) = &report.inventory {
            nodes(f, inventory)?;
        }
        what_to_do(f, &report.checks)?;
        if !report.connectivity.is_empty() {
            let from = "connectivity was checked from this machine, not from the cluster";
            writeln!(f, "\n{} {from}", paint(FAINT, "note:"))?;
        }
        writeln!(f, "\n{}", summary(report))
    }
}

/// What is required is said where it is not met.
fn table(checks: &[&Check], width: Option<usize>) -> Vec<String> {
    let head = ["OUTCOME", "SECTION", "CHECK", "FOUND"];
    let head = head.map(|text| Cell::new(text, FAINT));
    let before = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    let room = width.map(|width| width.saturating_sub(OUTCOME_AND_SECTION + before).max(NARROWEST));
    let rows = checks.iter().flat_map(|check| {
        let found = one_line(&check.found);
        let mut lines = match room {
            Some(room) => wrapped(&found, room),
            None => vec![found],
        }
        .into_iter();
        let first: [Cell; 4] = [
            Cell::new(check.outcome.as_str(), style(check.outcome)),
            check.section.as_str().into(),
            (&check.name).into(),
            lines.next().unwrap_or_default().into(),
        ];
        let more =
            lines.map(|line| [Cell::default(), Cell::default(), Cell::default(), line.into()]);
        std::iter::once(first).chain(more).collect::<Vec<_>>()
    });
    let rows: Vec<[Cell; 4]> = std::iter::once(head).chain(rows).collect();
    columns([Align::Left; 4], &rows)
}

/// How wide the columns before the check's name are at most, with the gaps around it.
const OUTCOME_AND_SECTION: usize = 25;
/// On a narrower terminal, its own wrapping is as good.
const NARROWEST: usize = 20;

/// The words of a text in lines of at most so many characters, unless one word is longer.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Pass => GOOD,
        Outcome::Warning => WARNING,
        Outcome::Skipped => FAINT,
        Outcome::Fail(_) => BAD,
    }
}

fn nodes(f: &mut fmt::Formatter<'_>, inventory: &Inventory) -> fmt::Result {
    let head = ["NODE", "READY", "WORKER", "KUBELET", "RUNTIME", "CAPACITY", "ALLOCATABLE"];
    let head = head.map(|text| Cell::new(text, FAINT));
    let yes = |holds: bool| if holds { "yes" } else { "no" };
    let rows = inventory.nodes.iter().map(|node| {
        [
            (&node.name).into(),
            yes(node.ready).into(),
            yes(node.worker).into(),
            (&node.kubelet).into(),
            (&node.runtime).into(),
            node.capacity.to_string().into(),
            node.allocatable.to_string().into(),
        ]
    });
    let sum = |resources: Resources| Cell::new(resources.to_string(), STRONG);
    let (capacity, allocatable) = (sum(inventory.capacity), sum(inventory.allocatable));
    let all = [
        "total".into(),
        Cell::default(),
        Cell::default(),
        Cell::default(),
        Cell::default(),
        capacity,
        allocatable,
    ];
    let rows: Vec<[Cell; 7]> = std::iter::once(head).chain(rows).chain([all]).collect();
    writeln!(f)?;
    columns([Align::Left; 7], &rows).iter().try_for_each(|line| writeln!(f, "{line}"))
}

/// The worst first, in the order of the checks.
fn what_to_do(f: &mut fmt::Formatter<'_>, checks: &[Check]) -> fmt::Result {
    let failed = |check: &&Check| matches!(check.outcome, Outcome::Fail(_));
    let warned = |check: &&Check| check.outcome == Outcome::Warning;
    let ordered = checks.iter().filter(failed).chain(checks.iter().filter(warned));
    let mut first = true;
    for check in ordered {
        let Some(next) = &check.next else { continue };
        let required = one_line(&check.required);
        if std::mem::take(&mut first) {
            writeln!(f)?;
        }
        let outcome = paint(style(check.outcome), check.outcome.as_str());
        let (section, name) = (check.section.as_str(), one_line(&check.name));
        let (name, next) = (paint(STRONG, &name), one_line(next));
        writeln!(f, "{outcome} {section} {name} (required: {required}): {next}")?;
    }
    Ok(())
}

fn summary(report: &Report) -> String {
    let count =
        |word: &str| report.checks.iter().filter(|check| check.outcome.as_str() == word).count();
    let readiness = match report.readiness {
        Readiness::Ready => paint(GOOD, "ready"),
        Readiness::Missing => paint(BAD, "not ready: something is missing"),
        Readiness::Rejected => paint(BAD, "not ready: credentials were rejected or lack rights"),
        Readiness::Unreachable => paint(BAD, "not ready: cannot reach the cluster"),
    };
    format!(
        "platform {} is {readiness}; {} failed, {} with warnings, {} passed, {} skipped",
        paint(STRONG, report.platform.as_str()),
        count("fail"),
        count("warning"),
        count("pass"),
        count("skipped"),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use tiphys_assess::preflight::cluster::Node;
    use tiphys_assess::preflight::connectivity::{Endpoint, Purpose, Tried, judge};
    use tiphys_assess::preflight::{Findings, Requirement, Section, Trouble};
    use tiphys_model::PlatformName;

    use super::*;

    /// One of each outcome, and text that no format may pass on as it is.
    pub(crate) fn report() -> Report {
        let check = |section, name: &str| Requirement::new(section, name, "1.6 or newer");
        let resources = Resources { cpu_millis: 2_000, memory_bytes: 1 << 30, pods: 110 };
        let node = |name: &str, ready| Node {
            name: name.to_owned(),
            ready,
            worker: true,
            kubelet: "v1.34.4".to_owned(),
            runtime: "containerd://1.6.20".to_owned(),
            capacity: resources,
            allocatable: resources,
        };
        let inventory =
            Inventory::new("v1.34.4".to_owned(), vec![node("a", true), node("b", false)]);
        let mirror = Endpoint { purpose: Purpose::Mirror, address: "mirror.example".to_owned() };
        let (reached, reach) = judge(&mirror, &Tried::Answers("answers".to_owned()));
        let findings = Findings {
            checks: vec![
                check(Section::Tools, "jq").failed(Trouble::Missing, "1.5", "install jq 1.6"),
                check(Section::Tools, "helm").skipped("not needed by the native installer"),
                check(Section::Cluster, "nodes").warned("not Ready:\n<b> & \"c\"\u{1b}[2J", "look"),
                check(Section::Cluster, "API server").passed("v1.34.4"),
                reached,
            ],
            inventory: Some(inventory),
            connectivity: vec![reach],
            credentials: Vec::new(),
        };
        Report::new(PlatformName::parse("demo").unwrap(), [findings])
    }

    fn plain(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn a_report_has_a_line_for_each_check_and_ends_with_the_verdict() {
        let report = &report();
        let shown = |skipped, width| plain(&PreflightReport { report, skipped, width }.to_string());
        insta::assert_snapshot!("preflight", shown(SkippedChecks::Shown, None));
        let narrow = shown(SkippedChecks::Counted, Some(60));
        assert!(narrow.contains("1 check does not apply: --all lists them"), "{narrow}");
        assert!(!narrow.contains("helm"), "{narrow}");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 7), ["incomprehensible"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
