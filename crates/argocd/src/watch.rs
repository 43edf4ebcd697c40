//! One watch on Applications, in all namespaces where they may be.

mod listing;

use std::collections::BTreeSet;

use futures::{Stream, StreamExt};
use kube::runtime::watcher;

use crate::application::Application;
use crate::applications::Applications;
use listing::Listing;
use tiphys_cluster::{Cause, RequestError, lasting_watch};
use tiphys_model::{Exit, Explain, Explanation, chain};

pub use tiphys_cluster::LONGEST_GAP;

/// Objects in one answer: what is not of the platform is thrown away page by page.
const PAGE: u32 = 100;

type Event = Result<watcher::Event<Application>, watcher::Error>;

/// What a watch has to tell.
#[derive(Debug)]
pub enum WatchEvent {
    Applied(Box<Application>),
    /// It is gone; there is no version of it that is newer than this.
    Gone {
        name: String,
        version: u64,
    },
    /// All that there is has been seen once, and these are there. After an interruption that was
    /// too long, it is listed again.
    Listed(BTreeSet<String>),
    /// There was trouble; the watch goes on by itself.
    Failed(WatchError),
}

/// A watch that was interrupted.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum WatchError {
    Request(#[from] RequestError),
    Stream(#[source] Box<watcher::Error>),
}

const INTERRUPTED: &str = "the watch on Applications was interrupted";

impl WatchError {
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            WatchError::Request(error) => error.cause(),
            WatchError::Stream(_) => Cause::Unreachable,
        }
    }
}

impl From<watcher::Error> for WatchError {
    fn from(error: watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => {
                RequestError::because(INTERRUPTED)(error).into()
            }
            watcher::Error::WatchError(status) => {
                RequestError::because(INTERRUPTED)(kube::Error::Api(status)).into()
            }
            error @ watcher::Error::NoResourceVersion => WatchError::Stream(Box::new(error)),
        }
    }
}

impl Explain for WatchError {
    fn explain(&self) -> Explanation {
        match self {
            WatchError::Request(error) => error.explain(),
            WatchError::Stream(error) => {
                Explanation::new(Exit::Unreachable, INTERRUPTED, chain(error))
            }
        }
    }
}

/// Watches the Applications of these names. With several namespaces, only those in projects of the
/// platform: others may have Applications of the same names.
pub fn applications(
    applications: &Applications,
    names: BTreeSet<String>,
) -> impl Stream<Item = WatchEvent> + use<> {
    let mut listing = Listing::new(applications.clone(), names);
    let watches = applications.all().enumerate().map(|(at, api)| {
        let api = api.clone();
        let events = lasting_watch(move |config| watcher(api.clone(), config.page_size(PAGE)));
        events.map(move |event| (at, event)).boxed()
    });
    let events = futures::stream::select_all(watches);
    events.filter_map(move |(at, event)| std::future::ready(listing.digest(at, event)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use serde_json::{Value, json};
    use tiphys_cluster::scripted::{self, Answer};

    use super::*;
    use crate::applications::tests::argocd;

    fn application(name: &str, version: &str) -> Value {
        in_project("apps", name, version)
    }

    fn in_project(project: &str, name: &str, version: &str) -> Value {
        json!({
            "metadata": { "name": name, "resourceVersion": version },
            "spec": { "project": project },
        })
    }

    fn event(kind: &str, object: &Value) -> Answer {
        Answer::Object(json!({ "type": kind, "object": object }))
    }

    fn later(seconds: u64, answer: Answer) -> Answer {
        Answer::After(Duration::from_secs(seconds), Box::new(answer))
    }

    fn list(version: &str, names: &[&str]) -> Answer {
        let items: Vec<Value> = names.iter().map(|name| application(name, "7")).collect();
        Answer::Object(json!({ "metadata": { "resourceVersion": version }, "items": items }))
    }

    /// What a server tells that gives these answers, and then none. `a` and `b` are ours.
    async fn told(answers: Vec<Answer>, events: usize) -> Vec<String> {
        told_of([("argocd", answers)].into(), events).await
    }

    /// The same by namespace.
    async fn told_of(answers: BTreeMap<&str, Vec<Answer>>, events: usize) -> Vec<String> {
        let others: Vec<&str> = answers.keys().copied().filter(|one| *one != "argocd").collect();
        let argocd = argocd(&others);
        let answers = answers.into_iter();
        let answers: BTreeMap<String, _> =
            answers.map(|(namespace, all)| (namespace.to_owned(), all.into_iter())).collect();
        let answers = Arc::new(Mutex::new(answers));
        let client = scripted::client(move |asked| {
            let never = || Answer::After(Duration::from_secs(3600), Box::new(Answer::Cut));
            let namespace = asked.path.split('/').nth(5).unwrap_or_default();
            let mut answers = answers.lock().unwrap();
            answers.get_mut(namespace).and_then(Iterator::next).unwrap_or_else(never)
        });
        let names = ["a", "b"].map(str::to_owned).into();
        let text = |event: WatchEvent| match event {
            WatchEvent::Applied(application) => format!("seen {}", application.name()),
            WatchEvent::Gone { name, version } => format!("gone {name} {version}"),
            WatchEvent::Listed(names) => format!("listed {names:?}"),
            WatchEvent::Failed(error) => format!("failed {:?}", error.cause()),
        };
        applications(&Applications::of(&client, &argocd), names)
            .take(events)
            .map(text)
            .collect()
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_ours_is_not_told() {
        let event =
            |kind: &str, name: &str, version: &str| event(kind, &application(name, version));
        let answers = vec![
            list("9", &["a", "other"]),
            event("MODIFIED", "other", "10"),
            event("DELETED", "other", "11"),
            event("MODIFIED", "a", "12"),
            event("DELETED", "a", "13"),
        ];
        let expected = ["seen a", r#"listed {"a"}"#, "seen a", "gone a 13"];
        assert_eq!(told(answers, 4).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_cannot_go_on_from_where_it_was_lists_again() {
        let within = Answer::Object(json!({
            "type": "ERROR",
            "object": { "status": "Failure", "code": 410, "reason": "Expired", "message": "old" },
        }));
        for expired in [within, Answer::refused(410, "old")] {
            let answers = vec![list("9", &["a", "b"]), expired.clone(), list("20", &["b"])];
            let expected = [
                "seen a",
                "seen b",
                r#"listed {"a", "b"}"#,
                "failed Other",
                "seen b",
                r#"listed {"b"}"#,
            ];
            assert_eq!(told(answers, 6).await, expected, "{expired:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_goes_on_after_odd_answers() {
        for (code, cause) in
            [(401, "Denied"), (403, "Denied"), (500, "Other"), (503, "Unreachable")]
        {
            let answers =
                vec![Answer::refused(code, "no"), list("9", &["a"]), Answer::refused(code, "no")];
            let failed = format!("failed {cause}");
            let expected = [&*failed, "seen a", r#"listed {"a"}"#, &failed];
            assert_eq!(told(answers, 4).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_namespaces_are_listed_when_both_are() {
        let argocd = vec![list("9", &["a"]), later(3, event("DELETED", &application("a", "12")))];
        let team = vec![
            later(1, list("9", &["b"])),
            later(1, Answer::refused(410, "old")),
            list("20", &["b", "other"]),
        ];
        let expected = [
            "seen a",
            "seen b",
            r#"listed {"a", "b"}"#,
            "failed Other",
            "seen b",
            r#"listed {"a", "b"}"#,
            "gone a 12",
        ];
        assert_eq!(told_of([("argocd", argocd), ("team", team)].into(), 7).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_namesake_that_is_not_the_platforms_is_not_told() {
        let theirs = |version: &str| in_project("theirs", "a", version);
        let argocd = vec![list("9", &["b"])];
        let team = vec![
            later(1, list("9", &["a"])),
            // It leaves the platform.
            later(3, event("MODIFIED", &theirs("11"))),
            later(1, event("DELETED", &theirs("12"))),
            later(1, event("ADDED", &application("a", "13"))),
        ];
        let web = vec![
            Answer::Object(json!({
                "metadata": { "resourceVersion": "9" }, "items": [theirs("8")],
            })),
            later(2, event("DELETED", &theirs("10"))),
        ];
        let expected = ["seen b", "seen a", r#"listed {"a", "b"}"#, "gone a 11", "seen a"];
        let answers = [("argocd", argocd), ("team", team), ("web", web)].into();
        assert_eq!(told_of(answers, 5).await, expected);
    }
}
