//! Reading lines back. What a reader does not know, it passes over: fields silently, kinds as a
//! value that says so. Whatever else is wrong with a line is an error.
//!
//! A line is read twice: for what all lines have, and for what its kind has. serde's `flatten`
//! would do so out of sight, and could not tell an unknown kind from a broken line.

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{EventKind, EventLine, VERSION};

/// One line of a log, as a reader finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    Event(Box<EventLine>),
    /// Of a newer writer, or `progress`, which has no number and may be dropped.
    Unknown {
        kind: String,
    },
}

impl EventKind {
    /// The names of all kinds.
    pub const NAMES: [&str; 15] = [
        "run-started",
        "held",
        "handed-off",
        "step-waiting",
        "step-syncing",
        "step-converging",
        "step-retrying",
        "step-done",
        "step-failed",
        "step-skipped",
        "step-removing",
        "step-removed",
        "revision-moved",
        "interrupted",
        "run-finished",
    ];
}

/// The object that a line is.
type Fields = Map<String, Value>;

#[derive(Deserialize)]
struct Tag {
    kind: String,
}

/// What lines of all kinds have.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    v: Option<u8>,
    seq: u64,
    at: Timestamp,
    elapsed_ms: u64,
}

impl<'de> Deserialize<'de> for LogLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let Tag { kind } = Tag::deserialize(&fields).map_err(Error::custom)?;
        if !EventKind::NAMES.contains(&kind.as_str()) {
            return Ok(LogLine::Unknown { kind });
        }
        let line = event_line(&fields).map_err(Error::custom)?;
        Ok(LogLine::Event(Box::new(line)))
    }
}

impl<'de> Deserialize<'de> for EventLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        event_line(&fields).map_err(Error::custom)
    }
}

fn event_line(fields: &Fields) -> Result<EventLine, serde_json::Error> {
    let Head { v, seq, at, elapsed_ms } = Head::deserialize(fields)?;
    if let Some(other) = v.filter(|v| *v != VERSION) {
        let problem = format!("unsupported log version {other}: expected {VERSION}");
        return Err(Error::custom(problem));
    }
    let kind = EventKind::deserialize(fields)?;
    Ok(EventLine { v, seq, at, elapsed_ms, kind })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The names that the type itself gives when it is asked for one that it does not have.
    fn names_of_the_type() -> Vec<String> {
        let refusal = EventKind::deserialize(json!({ "kind": "" })).unwrap_err().to_string();
        let (_, names) = refusal.split_once("expected one of ").unwrap();
        names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
    }

    #[test]
    fn the_names_are_those_of_the_kinds() {
        assert_eq!(names_of_the_type(), EventKind::NAMES);
    }

    #[test]
    fn what_is_unknown_is_passed_over_and_seen() {
        let unknown = |kind: &str| LogLine::Unknown { kind: kind.to_owned() };
        let read = |line: Value| serde_json::from_value::<LogLine>(line).unwrap();
        assert_eq!(read(json!({ "kind": "progress", "done": 7 })), unknown("progress"));
        let newer = json!({ "seq": 3, "at": "later", "elapsedMs": 5, "kind": "step-paused" });
        assert_eq!(read(newer), unknown("step-paused"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told() {
        let line = |kind: &str, key: &str, value: Value| {
            let mut line = json!({ "seq": 1, "at": "2000-01-01T00:00:00Z", "elapsedMs": 0 });
            line["kind"] = kind.into();
            line[key] = value;
            line
        };
        let cases = [
            (json!([]), "invalid type: sequence, expected a map"),
            (json!({ "seq": 1 }), "missing field `kind`"),
            (json!({ "kind": "held" }), "missing field `seq`"),
            (line("held", "at", json!("noon")), "failed to parse"),
            (line("held", "v", json!(2)), "unsupported log version 2: expected 1"),
            (line("step-syncing", "app", json!("a")), "missing field `attempt`"),
            (line("step-converging", "app", json!("A")), "'A' is not allowed in a name"),
            (line("interrupted", "signal", json!("SIGHUP")), "unknown variant `SIGHUP`"),
        ];
        for (line, problem) in cases {
            let shown = line.to_string();
            let error = serde_json::from_value::<LogLine>(line).unwrap_err().to_string();
            assert!(error.contains(problem), "{shown}: {error}");
        }
    }

    #[test]
    fn word_and_exit_code_of_the_last_line_must_agree() {
        let finished = |verdict: &str, exit: u8| {
            let counts = super::super::Counts::default();
            let line = json!({
                "seq": 9, "at": "2000-01-01T00:00:00Z", "elapsedMs": 0, "kind": "run-finished",
                "verdict": verdict, "exit": exit, "makespanMs": 0, "criticalPathMs": 0,
                "counts": counts,
            });
            serde_json::from_value::<EventLine>(line)
        };
        assert!(finished("interrupted", 143).is_ok());
        let refusal = finished("succeeded", 1).unwrap_err().to_string();
        assert_eq!(refusal, "the verdict \"succeeded\" does not match the exit code 1");
    }
}
