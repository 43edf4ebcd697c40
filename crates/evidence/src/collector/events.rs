//! What Kubernetes has said about resources.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::tree::Node;
use tiphys_cluster::excerpt::{EVENTS, cut};

/// An event, and when it last happened.
pub(super) struct ReportedEvent {
    at: String,
    text: String,
    /// What it has in common with others that say the same of other objects.
    gist: String,
}

/// The newest last, and of those that say the same only the newest.
pub(super) fn newest(mut events: Vec<ReportedEvent>) -> Vec<String> {
    events.sort_by(|a, b| b.at.cmp(&a.at));
    let mut known = BTreeSet::new();
    events.retain(|told| known.insert(told.gist.clone()));
    events.truncate(EVENTS);
    events.into_iter().rev().map(|told| told.text).collect()
}

#[derive(Deserialize)]
pub(super) struct EventList {
    items: Option<Vec<EventObject>>,
}

impl EventList {
    pub(super) fn warnings(self, node: &Node) -> Vec<ReportedEvent> {
        let events = self.items.unwrap_or_default().into_iter();
        events.filter(|event| event.kind == "Warning").map(|event| told(node, event)).collect()
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventObject {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
    count: Option<u32>,
    last_timestamp: Option<String>,
    event_time: Option<String>,
}

fn told(node: &Node, event: EventObject) -> ReportedEvent {
    let times = match event.count.unwrap_or_default() {
        0 | 1 => String::new(),
        count => format!(" ({count} times)"),
    };
    let message = event.message.trim();
    let message = message.strip_prefix("(combined from similar events): ").unwrap_or(message);
    let text = format!("{}: {} {message}", node.name(), event.reason);
    // A pod that cannot be made has another name each time.
    let gist = text.split('"').step_by(2).collect();
    let at = event.last_timestamp.or(event.event_time).unwrap_or_default();
    ReportedEvent { at, text: cut(&format!("{text}{times}")), gist }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tiphys_cluster::excerpt::LINE;

    #[test]
    fn events_are_short_and_counted() {
        let node: Node = serde_json::from_value(json!({ "kind": "Pod", "name": "a" })).unwrap();
        let event = EventObject {
            reason: "BackOff".to_owned(),
            message: "x".repeat(400),
            count: Some(7),
            ..EventObject::default()
        };
        let told = told(&node, event).text;
        assert!(told.starts_with("Pod/a: BackOff xxx") && told.ends_with('…'), "{told}");
        assert_eq!(told.chars().count(), LINE + 1);
    }

    #[test]
    fn of_events_that_say_the_same_the_newest_is_told() {
        let node: Node =
            serde_json::from_value(json!({ "kind": "ReplicaSet", "name": "a" })).unwrap();
        let event = |at: &str, message: &str| {
            let event = EventObject {
                reason: "FailedCreate".to_owned(),
                message: message.to_owned(),
                last_timestamp: Some(at.to_owned()),
                ..EventObject::default()
            };
            told(&node, event)
        };
        let events = vec![
            event("2", "(combined from similar events): pods \"a-2\" is forbidden"),
            event("3", "another"),
            event("1", "pods \"a-1\" is forbidden"),
        ];
        assert_eq!(
            newest(events),
            [
                "ReplicaSet/a: FailedCreate pods \"a-2\" is forbidden",
                "ReplicaSet/a: FailedCreate another"
            ]
        );
    }
}
