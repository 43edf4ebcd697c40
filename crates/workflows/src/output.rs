//! What an executor prints: events, and what it says beside them.

use serde::Deserialize;
use tiphys_run::{EventLine, LogLine};

/// One line of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Event(Box<EventLine>),
    Log { level: Level, text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Note,
    Warning,
    Error,
}

#[derive(Deserialize)]
struct Log {
    level: Level,
    message: String,
    why: Option<String>,
    next: Option<String>,
}

impl Said {
    /// Nothing, if it is neither: whoever stands around the executor may print, too.
    pub(crate) fn read(line: &str) -> Option<Self> {
        if let Ok(LogLine::Event(event)) = serde_json::from_str(line) {
            return Some(Said::Event(event));
        }
        let Log { level, message, why, next } = serde_json::from_str(line).ok()?;
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let next = next.map(|next| format!("; {next}")).unwrap_or_default();
        Some(Said::Log { level, text: format!("{message}{why}{next}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds_are_told_apart() {
        let held = r#"{"seq":1,"at":"2026-11-18T12:00:00Z","elapsedMs":0,"kind":"held"}"#;
        assert!(matches!(Said::read(held), Some(Said::Event(_))));
        let error = r#"{"at":"x","exit":3,"kind":"log","level":"error","message":"no","why":"a","next":"b"}"#;
        let text = "no: a; b".to_owned();
        assert_eq!(Said::read(error), Some(Said::Log { level: Level::Error, text }));
        for other in ["", "time=now msg=sub-process exited", "{}", "[1]"] {
            assert_eq!(Said::read(other), None);
        }
    }
}
