use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_cluster::scripted::{Answer, Server};
use tiphys_model::PlatformName;
use tiphys_run::LogLine;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;
use crate::records::Found;

type Told = UnboundedSender<(EventLine, String)>;

/// A line as a run writes it.
fn line(seq: u64, kind: &Value) -> (EventLine, String) {
    let mut fields = json!({ "seq": seq, "at": "2026-11-18T12:00:00Z", "elapsedMs": seq });
    fields.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
    let text = fields.to_string() + "\n";
    match serde_json::from_str(&text).unwrap() {
        LogLine::Event(line) => (*line, text),
        LogLine::Unknown { kind } => panic!("{kind}"),
    }
}

fn began(at: &str) -> (EventLine, String) {
    let (mut line, text) = line(
        0,
        &json!({
            "v": 1, "kind": "run-started", "run": "abc-1", "action": "deploy", "engine": "local",
            "platform": "prod", "scope": "platform",
            "plan": format!("sha256:{}", "0".repeat(64)), "graph": [],
        }),
    );
    line.at = at.parse::<Timestamp>().unwrap();
    (line, text)
}

fn finished() -> (EventLine, String) {
    let counts = serde_json::to_value(tiphys_run::Counts::default()).unwrap();
    line(
        2,
        &json!({
            "kind": "run-finished", "verdict": "succeeded", "exit": 0, "makespanMs": 2,
            "criticalPathMs": 1, "counts": counts,
        }),
    )
}

/// Starts recording; lines are sent through the channel.
fn keeping(server: &Server) -> (Told, JoinHandle<Result<(), Unkept>>) {
    let (tell, lines) = unbounded_channel();
    let store = RecordStore::new(&server.client());
    (tell, tokio::spawn(async move { keep(store, "argocd", "us", lines).await }))
}

async fn found(server: &Server) -> Vec<Found> {
    let prod = PlatformName::parse("prod").unwrap();
    let found = RecordStore::new(&server.client()).list("argocd", Some(&prod)).await;
    // The scripted server ignores label selectors; segments are skipped because they have no head.
    found.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_a_run_says_can_be_read_while_it_goes_on_and_after_it() {
    let server = Server::default();
    let (tell, kept) = keeping(&server);
    let lines = [began("2026-11-18T12:00:00Z"), line(1, &json!({ "kind": "held" })), finished()];
    let [first, second, last] = lines.clone();
    tell.send(first).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let heads = found(&server).await;
    assert_eq!((heads.len(), heads[0].head.segments), (1, 0), "{heads:?}");
    tell.send(second).unwrap();
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(found(&server).await[0].head.segments, 1);
    tell.send(last).unwrap();
    drop(tell);
    kept.await.unwrap().unwrap();
    let heads = found(&server).await;
    let store = RecordStore::new(&server.client());
    let texts: String = lines.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(store.lines_after(&heads[0], 0).await.unwrap(), texts);
    let end = heads[0].head.finished.as_ref().unwrap();
    assert_eq!((heads[0].head.segments, end.exit().code()), (2, 0));
    assert!(serde_json::to_string(&heads[0].head).unwrap().len() < 4_000);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_costs_no_line() {
    let server = Server::default();
    let (tell, kept) = keeping(&server);
    for _ in 0..3 {
        server.next(Method::PATCH, "configmaps", Answer::refused(503, "away"));
    }
    server.lose_answer(Method::POST, "configmaps");
    tell.send(began("2026-11-18T12:00:00Z")).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    tell.send(finished()).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    drop(tell);
    kept.await.unwrap().unwrap();
    let heads = found(&server).await;
    let lines = RecordStore::new(&server.client()).lines_after(&heads[0], 0).await.unwrap();
    assert_eq!(lines.lines().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn where_it_cannot_be_kept_it_is_given_up_at_once() {
    for (code, nowhere) in [(404, true), (403, false)] {
        let server = Server::default();
        server.next(Method::PATCH, "configmaps", Answer::refused(code, "no"));
        let (tell, kept) = keeping(&server);
        tell.send(began("2026-11-18T12:00:00Z")).unwrap();
        let unkept = kept.await.unwrap().unwrap_err();
        assert_eq!(matches!(unkept, Unkept::Nowhere), nowhere, "{unkept:?}");
        assert_eq!(server.writes().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_twenty_runs_are_kept() {
    let server = Server::default();
    for minute in 10..35 {
        let (tell, kept) = keeping(&server);
        tell.send(began(&format!("2026-11-18T12:{minute}:00Z"))).unwrap();
        tell.send(finished()).unwrap();
        drop(tell);
        kept.await.unwrap().unwrap();
    }
    let heads = found(&server).await;
    let minutes = heads.iter().map(|found| found.head.started.to_string());
    let minutes: Vec<String> = minutes.map(|text| text[14..16].to_owned()).collect();
    let newest: Vec<String> = (15..35).rev().map(|minute| minute.to_string()).collect();
    assert_eq!(minutes, newest);
}

#[tokio::test]
async fn a_run_that_never_began_has_no_record() {
    let server = Server::default();
    let (tell, kept) = keeping(&server);
    drop(tell);
    kept.await.unwrap().unwrap();
    assert_eq!(server.requests(), Vec::<String>::new());
}
