//! Sync windows of an AppProject, and whether they let a manual sync through now.
//!
//! Argo CD asks an active deny window first: if each of them has `manualSync`, a manual sync passes
//! without a look at the allow windows. Our hold is such a window, so with it in the project Argo CD
//! would let through what an allow window of others forbids. What others forbid is therefore judged
//! here, without the hold, as `SyncWindows.CanSync` of Argo CD does.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use tiphys_model::Schedule;
use tiphys_model::glob::{self, Star};

use crate::Application;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncWindow {
    kind: String,
    schedule: String,
    duration: String,
    applications: Vec<String>,
    namespaces: Vec<String>,
    clusters: Vec<String>,
    manual_sync: bool,
    time_zone: String,
    and_operator: bool,
    description: String,
}

/// Why a manual sync has to wait: these windows, in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// A deny window is open.
    ByDeny(String),
    /// No allow window is open.
    OutsideAllow(String),
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Denied::ByDeny(window) => write!(f, "the sync window {window} is open"),
            Denied::OutsideAllow(window) => write!(f, "the sync window {window} is not open"),
        }
    }
}

/// A window that cannot be judged. Argo CD syncs nothing that such a window is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the sync window {window} has an invalid {what}")]
pub struct Unreadable {
    what: &'static str,
    window: String,
}

/// Whether these windows deny a manual sync of an Application now.
pub fn deny_manual_sync<'a>(
    windows: impl IntoIterator<Item = &'a SyncWindow>,
    application: &Application,
    now: Timestamp,
) -> Result<Option<Denied>, Unreadable> {
    let (mut denying, mut allowing, mut closed) = (Vec::new(), Vec::new(), Vec::new());
    for window in windows.into_iter().filter(|window| window.is_about(application)) {
        match (window.kind.as_str(), window.is_open(now)?) {
            ("deny", true) => denying.push(window),
            ("allow", true) => allowing.push(window),
            ("allow", false) => closed.push(window),
            _ => {}
        }
    }
    if !denying.is_empty() {
        let strict = denying.iter().find(|window| !window.manual_sync);
        return Ok(strict.map(|window| Denied::ByDeny(window.to_string())));
    }
    if !allowing.is_empty() {
        return Ok(None);
    }
    let strict = closed.iter().find(|window| !window.manual_sync);
    Ok(strict.map(|window| Denied::OutsideAllow(window.to_string())))
}

impl SyncWindow {
    /// A window as an AppProject has it. A value of the wrong kind is refused by the CRD.
    pub fn parse(window: &Value) -> Result<Self, Unreadable> {
        serde_json::from_value(window.clone())
            .map_err(|_| Unreadable { what: "field", window: format!("`{window}`") })
    }

    /// As `SyncWindows.Matches`: by default one list that has the app is enough, and with
    /// `andOperator` each list that is not empty must.
    fn is_about(&self, application: &Application) -> bool {
        let destination = |field: &str| application.spec.destination[field].as_str().unwrap_or("");
        let cluster = |field| match destination(field) {
            "" => false,
            text => one_matches(&self.clusters, text),
        };
        let apps = one_matches(&self.applications, application.name());
        let clusters = cluster("name") || cluster("server");
        let namespaces = one_matches(&self.namespaces, destination("namespace"));
        let lists = [
            (&self.applications, apps),
            (&self.clusters, clusters),
            (&self.namespaces, namespaces),
        ];
        let mut given = lists.iter().filter(|(list, _)| !list.is_empty()).peekable();
        if self.and_operator {
            given.peek().is_some() && given.all(|(_, matches)| *matches)
        } else {
            given.any(|(_, matches)| *matches)
        }
    }

    /// As `SyncWindow.Active`.
    fn is_open(&self, now: Timestamp) -> Result<bool, Unreadable> {
        let unreadable = |what| Unreadable { what, window: self.to_string() };
        let schedule = Schedule::parse(&self.schedule).ok_or_else(|| unreadable("schedule"))?;
        let duration = match self.duration.as_str() {
            "0" => SignedDuration::ZERO,
            text => text.parse().map_err(|_| unreadable("duration"))?,
        };
        let zone = match self.time_zone.as_str() {
            "" | "UTC" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| unreadable("time zone"))?,
        };
        schedule.is_open(duration, &zone, now).ok_or_else(|| unreadable("duration"))
    }
}

fn one_matches(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| glob::matches(pattern, text, Star::Anything))
}

impl std::fmt::Display for SyncWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SyncWindow { kind, schedule, duration, time_zone, description, .. } = self;
        write!(f, "`{kind} {schedule}` for {duration}")?;
        if !time_zone.is_empty() {
            write!(f, " {time_zone}")?;
        }
        if !description.is_empty() {
            write!(f, " ({description})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
