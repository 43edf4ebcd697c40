//! Webhooks: when they were called, and whether they are when they should be.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::deploy_loop::News;

/// A call may come a little earlier than Argo CD finds the commit.
const EARLY: SignedDuration = SignedDuration::from_secs(60);

/// What a Git server calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// Of its trigger.
    pub name: String,
    pub provider: &'static str,
    /// Inside the cluster.
    pub address: String,
    /// When it was called last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// A commit that the deploy loop found although nobody had called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<News>,
}

impl WebhookStatus {
    /// With what the loop has found since the webhook was there.
    #[must_use]
    pub fn noticing(self, news: Option<&News>, created: Option<Timestamp>) -> Self {
        let missed = news.filter(|news| {
            let was_there = created.is_some_and(|created| created < news.at);
            was_there && self.last.is_none_or(|last| last + EARLY < news.at)
        });
        WebhookStatus { missed: missed.cloned(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_nobody_called_about_is_missed() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let news = News { revision: "a".to_owned(), at: at(1000) };
        let missed = |last: Option<i64>, created: i64| {
            let webhook = WebhookStatus {
                name: "push".to_owned(),
                provider: "github",
                address: String::new(),
                last: last.map(at),
                missed: None,
            };
            webhook.noticing(Some(&news), Some(at(created))).missed.is_some()
        };
        assert!(missed(None, 10) && missed(Some(900), 10));
        assert!(!missed(Some(990), 10) && !missed(Some(1001), 10), "that call was about it");
        assert!(!missed(None, 1001), "there was no webhook yet");
    }
}
