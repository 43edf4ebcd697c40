//! Text of others in everything that people read: it commands no terminal, and is no line of ours.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use proptest::prelude::*;
use serde_json::{Value, json};
use tiphys_assess::deploy_loop::commit::{CommitState, Told};
use tiphys_assess::deploy_loop::validation::Validated;
use tiphys_assess::deploy_loop::{News, Pause};
use tiphys_assess::preflight::cluster::{Inventory, Node};
use tiphys_assess::preflight::resources::Resources;
use tiphys_assess::preflight::{Findings, Report, Requirement, Section, Trouble};
use tiphys_assess::status::{
    Answer, AppStatus, Authority, Bypass, Check, HoldStatus, LastRun, LoopStatus, PlatformPhase,
    RootCause, RunStatus, ScheduleStatus, State, Status, WebhookStatus,
};
use tiphys_model::platform::Hold;
use tiphys_model::{AppName, PlatformName, Scope};
use tiphys_report::{
    Ending, Notice, ObjectLine, ObjectState, Outcomes, OutcomesMarkdown, PreflightReport, Size,
    SkippedChecks, StatusReport, Summary, ValidateReport, WhyReport, difference, event_line, frame,
    object_table, render_diagnostics, render_notice, status_line, width,
};
use tiphys_run::{Action, EventLine, Evidence, RunView, Time};
use tiphys_spec::{Source, Sources};

const FORGED: &str = "error: forged";
const SIZE: Size = Size { columns: 80, rows: 24 };

/// How a text is shown: by whom, and what that comes to.
type Shown = (&'static str, String);

fn preflight_report(report: &Report) -> String {
    let skipped = SkippedChecks::Shown;
    PreflightReport { report, skipped, width: None }.to_string()
}

/// Everything that shows a text of others within lines of its own.
fn in_lines(text: &str) -> Vec<Shown> {
    let notice = Notice {
        what: text.to_owned(),
        place: Some(text.to_owned()),
        why: None,
        next: Some(text.to_owned()),
    };
    let object =
        ObjectLine { kind: text, name: text, namespace: text, state: ObjectState::Changed };
    let (status, log) = (status(text), log(text));
    let mut view = RunView::default();
    for line in &log {
        view.fold(line);
    }
    let lines: String = log.iter().filter_map(event_line).map(|line| line + "\n").collect();
    let running = frame(&view, Time::from_millis(5_000), SIZE).join("\n");
    vec![
        ("diagnostics", diagnostics(text)),
        ("notice", render_notice(&notice)),
        ("object_table", object_table(&[object])),
        ("preflight", preflight_report(&preflight(text))),
        ("status", StatusReport(&status).to_string()),
        ("validate", ValidateReport(&status).to_string()),
        ("status_line", status_line(&status.apps[0])),
        ("why", why(text, &status)),
        ("event_line", lines),
        ("outcomes", OutcomesMarkdown(&Outcomes::of_run(&view).unwrap()).to_string()),
        ("frame", running),
        ("summary", Summary::new(&view, Ending::Resume(text)).to_string()),
    ]
}

/// What keeps the lines of a text, behind something of its own.
fn with_lines(text: &str) -> Vec<Shown> {
    let notice =
        Notice { what: "a".to_owned(), place: None, why: Some(text.to_owned()), next: None };
    let object = ObjectLine { kind: "a", name: "b", namespace: "c", state: ObjectState::Changed };
    vec![
        ("notice with a reason", render_notice(&notice)),
        ("difference", difference(&object, &format!("a\n{text}"), &format!("{text}\nb"))),
    ]
}

/// Of a field that the platform file should not have.
fn diagnostics(text: &str) -> String {
    let escaped: String = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    let file = format!(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: a }}\n\
         spec: {{ stacks: [{{ name: s, apps: [{{ name: a }}] }}] }}\n\"zzzzzz{escaped}\": 1\n"
    );
    let sources = Sources::new(vec![Source::new("platform.yaml", file.into()).unwrap()]);
    let problems = tiphys_spec::platform(&sources).unwrap_err();
    render_diagnostics(&sources, problems)
}

fn preflight(text: &str) -> Report {
    let check = |section| Requirement::new(section, text, text);
    let resources = Resources { cpu_millis: 2_000, memory_bytes: 1 << 30, pods: 110 };
    let node = Node {
        name: text.to_owned(),
        ready: true,
        worker: true,
        kubelet: text.to_owned(),
        runtime: text.to_owned(),
        capacity: resources,
        allocatable: resources,
    };
    let findings = Findings {
        checks: vec![
            check(Section::Tools).failed(Trouble::Missing, text, text),
            check(Section::Cluster).warned(text, text),
            check(Section::Cluster).skipped(text),
        ],
        inventory: Some(Inventory::new(text.to_owned(), vec![node])),
        connectivity: Vec::new(),
        credentials: Vec::new(),
    };
    Report::new(PlatformName::parse("demo").unwrap(), [findings])
}

fn name(text: &str) -> AppName {
    AppName::parse(text).unwrap()
}

fn status(text: &str) -> Status {
    let app = AppStatus {
        name: name("db"),
        state: State::Failed,
        health: None,
        sync: None,
        revision: Some(text.to_owned()),
        since: None,
        waiting_for: Vec::new(),
        cause: Some(text.to_owned()),
        because: vec![name("web")],
        tolerated: vec![text.into()],
    };
    Status {
        platform: PlatformName::parse("demo").unwrap(),
        phase: PlatformPhase::Orchestration,
        authority: Authority::Orchestration,
        hold: HoldStatus {
            policy: Hold::DuringRun,
            run: Some(text.to_owned()),
            apps: vec![name("db")],
        },
        run: Some(RunStatus { action: text.to_owned(), holder: text.to_owned(), expired: true }),
        last_run: Some(LastRun {
            run: text.to_owned(),
            action: Action::Deploy,
            scope: Scope::Platform,
            started: "2026-11-18T12:00:00Z".parse().unwrap(),
            state: text.to_owned(),
            took_ms: None,
        }),
        apps: vec![app],
        bypasses: vec![Bypass {
            app: text.to_owned(),
            by: text.into(),
            running: true,
            finished_at: None,
        }],
        root_causes: vec![RootCause {
            app: name("db"),
            state: State::Failed,
            cause: text.to_owned(),
            since: None,
            affects: vec![name("web")],
        }],
        deploy_loop: Some(LoopStatus {
            pause: Some(Pause {
                by: text.to_owned(),
                at: "2026-11-19T12:00:00Z".parse().unwrap(),
                reason: Some(text.to_owned()),
            }),
            seen: None,
            asleep: true,
            told: Some(Told {
                revision: text.to_owned(),
                state: CommitState::Failed,
                refused: Some(text.to_owned()),
            }),
            validated: std::collections::BTreeMap::from([(
                text.to_owned(),
                Validated {
                    change: text.to_owned(),
                    workflow: text.to_owned(),
                    at: "2026-11-19T12:00:00Z".parse().unwrap(),
                },
            )]),
        }),
        schedules: vec![ScheduleStatus {
            name: text.to_owned(),
            action: "deploy",
            scope: Scope::Platform,
            last: None,
            next: None,
        }],
        webhooks: vec![WebhookStatus {
            name: text.to_owned(),
            provider: "github",
            address: text.to_owned(),
            last: None,
            missed: Some(News {
                revision: text.to_owned(),
                at: "2026-11-19T12:00:00Z".parse().unwrap(),
            }),
        }],
        leftovers: Some(vec![text.to_owned()]),
    }
}

fn evidence(text: &str) -> Value {
    json!({
        "message": text, "drifted": [text], "resource": text, "events": [text], "logs": [text],
        "likely": text, "unseen": [text],
    })
}

fn why(text: &str, status: &Status) -> String {
    let mut app = status.apps[0].clone();
    let evidence: Evidence = serde_json::from_value(evidence(text)).unwrap();
    let check = Check { question: "is it?", answer: Answer::No, seen: text.to_owned() };
    let report = |app: &AppStatus| {
        let (checks, evidence) = (Some(std::slice::from_ref(&check)), Some(&evidence));
        WhyReport { app, chain: vec![app], checks, evidence, next: text }.to_string()
    };
    let with_cause = report(&app);
    // What is said of the cause is not said again, so evidence is seen without one.
    app.cause = None;
    with_cause.lines().take(2).map(|line| format!("{line}\n")).collect::<String>() + &report(&app)
}

/// A run with every event that has a text.
fn log(text: &str) -> Vec<EventLine> {
    let app = |name: &str| json!({ "app": name, "stack": "s", "layer": 0, "dependsOn": [], "typicalSeconds": 60 });
    let events = [
        json!({
            "kind": "run-started", "run": text, "action": "deploy", "engine": "local",
            "platform": "demo", "scope": "platform", "plan": format!("sha256:{}", "0".repeat(64)),
            "graph": [app("a"), app("b"), app("c")],
        }),
        json!({ "kind": "step-waiting", "app": "a", "on": [], "reason": text }),
        json!({ "kind": "revision-moved", "app": "a", "from": text, "to": text }),
        json!({ "kind": "step-syncing", "app": "a", "attempt": 1 }),
        json!({ "kind": "step-retrying", "app": "a", "cause": text, "inMs": 1000 }),
        json!({
            "kind": "step-failed", "app": "b", "state": "failed", "cause": text, "hint": text,
            "evidence": evidence(text),
        }),
        json!({ "kind": "step-skipped", "app": "c", "because": ["b"], "reason": text }),
        json!({
            "kind": "run-finished", "verdict": "failed", "exit": 1, "makespanMs": 1, "criticalPathMs": 1,
            "counts": {
                "applied": 0, "alreadyCurrent": 0, "removed": 0, "failed": 1, "errored": 0,
                "timedOut": 0, "skipped": 1, "unhealthy": 0, "unfinished": 1,
            },
        }),
    ];
    let line = |(seq, mut event): (usize, Value)| {
        event["seq"] = json!(seq);
        event["at"] = json!("2026-11-16T00:00:00Z");
        event["elapsedMs"] = json!(1000);
        serde_json::from_value(event).unwrap()
    };
    events.into_iter().enumerate().map(line).collect()
}

/// Without our colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => plain += rest,
            None => plain += &format!("\u{1b}[{part}"),
        }
    }
    plain
}

fn assert_harmless((by, shown): &Shown) {
    let plain = plain(shown);
    let bad = plain.chars().find(|c| {
        let command = c.is_control() && !matches!(c, '\n' | '\t');
        command || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    });
    assert_eq!(bad, None, "{by}: {plain:?}");
    assert!(!plain.lines().any(|line| line.starts_with(FORGED)), "{by}:\n{plain}");
}

fn assert_hostile_text_is_shown_as_text(text: &str) {
    // With as many words: what is empty may be left out.
    let (hostile, friendly) = (in_lines(&format!("a{text}z")), in_lines("a friendly text"));
    for (hostile, friendly) in hostile.iter().zip(&friendly) {
        assert_harmless(hostile);
        let lines = |shown: &Shown| shown.1.matches('\n').count();
        assert_eq!(lines(hostile), lines(friendly), "{}:\n{}", hostile.0, plain(&hostile.1));
        if hostile.0 == "frame" {
            let widest = plain(&hostile.1).lines().map(width).max();
            assert!(widest <= Some(SIZE.columns), "{}", plain(&hostile.1));
        }
    }
    with_lines(text).iter().for_each(assert_harmless);
}

#[test]
fn hostile_text_is_shown_as_text() {
    let long = "x".repeat(100_000);
    let wide = "漢".repeat(200);
    let many = "\n".repeat(1_000);
    for text in [
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;http://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "\u{1b}[2J\u{1b}[1;1H",
        "\u{1b}[31mred\u{1b}[8mhidden",
        "good\rerror: forged",
        "good\nerror: forged",
        "good\r\nerror: forged\r\n",
        "good\u{b}error: forged\u{c}",
        "good\u{85}error: forged",
        "good\u{2028}error: forged",
        "\u{202e}dedoc\u{2066}\u{2069}",
        "\u{9b}2J\u{9d}0;title\u{9c}",
        "\u{8}\u{8}\u{8}\u{7f}\0",
        "\t\t\t",
        &long,
        &wide,
        &many,
    ] {
        assert_hostile_text_is_shown_as_text(text);
    }
}

/// The colours of others are no colours of ours.
#[test]
fn nobody_else_paints() {
    for (by, shown) in in_lines("\u{1b}[8mx").into_iter().chain(with_lines("\u{1b}[8mx")) {
        assert!(!shown.contains("\u{1b}[8m"), "{by}: {shown:?}");
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        (0_u32..0xa0).prop_map(|c| char::from_u32(c).unwrap().to_string()),
        prop::sample::select(vec![
            "\u{1b}[",
            "\u{1b}]0;",
            "\u{9b}",
            "\n",
            "\r",
            "\r\n",
            "m",
            "2J",
            "31m",
            "\u{202e}",
            "\u{2067}",
            "\u{2028}",
            FORGED,
            "漢",
            " ",
            "e\u{301}",
            "\t",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_breaks_out(text in hostile_text()) {
        assert_hostile_text_is_shown_as_text(&text);
    }
}
