//! Lines are read as they were written, whatever they tell, and whatever a newer writer adds.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in the helpers of a test, a panic is the report"
)]

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tiphys_model::plan::Digest;
use tiphys_model::{AppName, Health, PlatformName, Scope, StackName};
use tiphys_run::{
    Action, Counts, EngineName, EventKind, EventLine, Evidence, FailState, GraphApp, How, LogLine,
    RunFinished, RunStarted, Signal, UnhealthyApp, Verdict,
};

/// Lines of every kind, all of them as often as each other.
fn lines() -> impl Strategy<Value = EventLine> {
    let kinds = select(&EventKind::NAMES[..]).prop_flat_map(|name| {
        kind(name).prop_map(move |kind| {
            let written = serde_json::to_value(&kind).unwrap();
            assert_eq!(written["kind"], name, "the strategy is of another kind");
            kind
        })
    });
    let times = Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond();
    let at = times.prop_map(|nanosecond| Timestamp::from_nanosecond(nanosecond).unwrap());
    let v = option::of(Just(1));
    (v, any::<u64>(), at, any::<u64>(), kinds)
        .prop_map(|(v, seq, at, elapsed_ms, kind)| EventLine { v, seq, at, elapsed_ms, kind })
}

/// A kind by its name: a new one that has no strategy here fails every test.
fn kind(name: &str) -> BoxedStrategy<EventKind> {
    match name {
        "run-started" => started().prop_map(EventKind::RunStarted).boxed(),
        "held" => Just(EventKind::Held).boxed(),
        "handed-off" => app().prop_map(|app| EventKind::HandedOff { app }).boxed(),
        "step-waiting" => (app(), vec(app(), 0..3), option::of(text()))
            .prop_map(|(app, on, reason)| EventKind::StepWaiting { app, on, reason })
            .boxed(),
        "step-syncing" => (app(), any::<u32>())
            .prop_map(|(app, attempt)| EventKind::StepSyncing { app, attempt })
            .boxed(),
        "step-converging" => app().prop_map(|app| EventKind::StepConverging { app }).boxed(),
        "step-retrying" => (app(), text(), any::<u64>())
            .prop_map(|(app, cause, in_ms)| EventKind::StepRetrying { app, cause, in_ms })
            .boxed(),
        "step-done" => (app(), select(vec![How::Applied, How::AlreadyCurrent]), any::<u64>())
            .prop_map(|(app, how, took_ms)| EventKind::StepDone { app, how, took_ms })
            .boxed(),
        "step-failed" => (app(), fail_state(), text(), evidence(), text())
            .prop_map(|(app, state, cause, evidence, hint)| EventKind::StepFailed {
                app,
                state,
                cause,
                evidence,
                hint,
            })
            .boxed(),
        "step-skipped" => (app(), vec(app(), 0..3), text())
            .prop_map(|(app, because, reason)| EventKind::StepSkipped { app, because, reason })
            .boxed(),
        "step-removing" => app().prop_map(|app| EventKind::StepRemoving { app }).boxed(),
        "step-removed" => (app(), any::<u64>())
            .prop_map(|(app, took_ms)| EventKind::StepRemoved { app, took_ms })
            .boxed(),
        "revision-moved" => (app(), text(), text())
            .prop_map(|(app, from, to)| EventKind::RevisionMoved { app, from, to })
            .boxed(),
        "interrupted" => select(vec![Signal::Interrupt, Signal::Terminate])
            .prop_map(|signal| EventKind::Interrupted { signal })
            .boxed(),
        "run-finished" => finished().prop_map(EventKind::RunFinished).boxed(),
        other => panic!("{other} has no strategy"),
    }
}

fn started() -> impl Strategy<Value = RunStarted> {
    let action = select(vec![Action::Deploy, Action::Teardown]);
    let engine = select(vec![EngineName::Simulated, EngineName::Local, EngineName::Workflows]);
    let scope = prop_oneof![
        Just(Scope::Platform),
        stack().prop_map(|name| Scope::stack(&name)),
        app().prop_map(|name| Scope::app(&name)),
    ];
    let platform = "[a-z]{1,8}".prop_map(|name| PlatformName::parse(&name).unwrap());
    let plan = any::<[u8; 32]>().prop_map(Digest::from_sha256);
    let head = (text(), action, engine, option::of(any::<u64>()));
    (head, platform, scope, plan, vec(graph_app(), 0..4)).prop_map(
        |((run, action, engine, seed), platform, scope, plan, graph)| RunStarted {
            run,
            action,
            engine,
            seed,
            platform,
            scope,
            plan,
            graph,
        },
    )
}

fn graph_app() -> impl Strategy<Value = GraphApp> {
    (app(), stack(), any::<u32>(), vec(app(), 0..3), any::<u64>()).prop_map(
        |(app, stack, layer, depends_on, typical_seconds)| GraphApp {
            app,
            stack,
            layer,
            depends_on,
            typical_seconds,
        },
    )
}

fn finished() -> impl Strategy<Value = RunFinished> {
    let counts = any::<[usize; 9]>().prop_map(
        |[
            applied,
            already_current,
            removed,
            failed,
            errored,
            timed_out,
            skipped,
            unhealthy,
            unfinished,
        ]| Counts {
            applied,
            already_current,
            removed,
            failed,
            errored,
            timed_out,
            skipped,
            unhealthy,
            unfinished,
        },
    );
    let unhealthy = (app(), text(), evidence(), text())
        .prop_map(|(app, cause, evidence, hint)| UnhealthyApp { app, cause, evidence, hint });
    let unhealthy = vec(unhealthy, 0..3);
    (select(&Verdict::ALL[..]), any::<u64>(), any::<u64>(), counts, unhealthy).prop_map(
        |(verdict, makespan_ms, critical_path_ms, counts, unhealthy)| RunFinished {
            verdict,
            makespan_ms,
            critical_path_ms,
            counts,
            unhealthy,
        },
    )
}

fn fail_state() -> impl Strategy<Value = FailState> {
    select(vec![FailState::Failed, FailState::Errored, FailState::TimedOut])
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let health = select(vec![
        Health::Healthy,
        Health::Suspended,
        Health::Progressing,
        Health::Missing,
        Health::Degraded,
        Health::Unknown,
    ]);
    let message = text().prop_map(Into::into);
    let texts = || vec(text(), 0..3);
    let optional = || option::of(text());
    let own = (option::of(health), option::of(message), texts());
    (own, optional(), texts(), texts(), optional(), texts()).prop_map(
        |((health, message, drifted), resource, events, logs, likely, unseen)| Evidence {
            health,
            message,
            drifted,
            resource,
            events,
            logs,
            likely,
            unseen,
        },
    )
}

fn app() -> impl Strategy<Value = AppName> {
    "[a-z]([a-z0-9.]?[a-z0-9]){0,4}".prop_map(|name| AppName::parse(&name).unwrap())
}

fn stack() -> impl Strategy<Value = StackName> {
    "[a-z]{1,8}".prop_map(|name| StackName::parse(&name).unwrap())
}

/// Text as clusters give it, line breaks, quotes and all.
fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

/// Gives every object of a line a field that no reader knows.
fn add_unknown_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_unknown_fields);
            fields.insert("addedLater".to_owned(), json!({ "kind": ["held"] }));
        }
        Value::Array(values) => values.iter_mut().for_each(add_unknown_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read(line in lines()) {
        let written = serde_json::to_string(&line).unwrap();
        prop_assert!(!written.contains('\n'), "it is one line");
        let read: LogLine = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(&read, &LogLine::Event(Box::new(line.clone())));
        prop_assert_eq!(serde_json::from_str::<EventLine>(&written).unwrap(), line);
    }

    #[test]
    fn fields_that_a_newer_writer_adds_are_passed_over(line in lines()) {
        let mut written = serde_json::to_value(&line).unwrap();
        add_unknown_fields(&mut written);
        prop_assert_eq!(serde_json::from_value::<EventLine>(written).unwrap(), line);
    }

    #[test]
    fn a_kind_that_a_newer_writer_adds_is_told(line in lines()) {
        let mut written = serde_json::to_value(&line).unwrap();
        written["kind"] = json!("step-paused");
        let read: LogLine = serde_json::from_value(written).unwrap();
        prop_assert_eq!(read, LogLine::Unknown { kind: "step-paused".to_owned() });
    }
}
