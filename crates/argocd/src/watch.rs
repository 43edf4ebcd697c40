//! One watch on Applications.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::application::Application;
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, chain};

/// How long one call of the watch lasts, in seconds. A connection that died silently is noticed
/// five seconds later.
const CALL: u32 = 25;
/// How long a watch that failed waits before it tries again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Failures of a watch that are further apart than this have a time between them when it went well.
/// A call that goes well and has nothing to tell shows nothing else.
pub const LONGEST_GAP: Duration = Duration::from_secs(15);
/// Objects in one answer: what is not of the platform is thrown away page by page.
const PAGE: u32 = 100;

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

/// Watches the Applications of these names.
pub fn applications(
    client: Client,
    namespace: &str,
    names: BTreeSet<String>,
) -> impl Stream<Item = WatchEvent> + use<> {
    let api: Api<Application> = Api::namespaced(client, namespace);
    let watch = Watch { events: begin(&api), api, expired: false };
    let mut listing = Listing { names, listed: BTreeSet::new() };
    let events = futures::stream::unfold(watch, |mut watch| async move {
        watch.next().await.map(|event| (event, watch))
    });
    events.filter_map(move |event| std::future::ready(listing.digest(event)))
}

type Event = Result<watcher::Event<Application>, watcher::Error>;

fn begin(api: &Api<Application>) -> BoxStream<'static, Event> {
    let config = watcher::Config::default().timeout(CALL).page_size(PAGE);
    watcher(api.clone(), config).backoff(Pauses(FIRST_PAUSE)).boxed()
}

/// A watch that begins anew when the server refuses to go on from where it was.
struct Watch {
    api: Api<Application>,
    events: BoxStream<'static, Event>,
    expired: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.expired) {
            tokio::time::sleep(FIRST_PAUSE).await;
            self.events = begin(&self.api);
        }
        let event = self.events.next().await;
        self.expired = event.as_ref().is_some_and(is_expired);
        event
    }
}

/// Told within a watch, the watcher lists anew by itself; as the answer to its beginning, it would
/// ask for the same again for ever.
fn is_expired(event: &Event) -> bool {
    let Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) = event else {
        return false;
    };
    status.code == 410
}

/// Twice as long each time.
struct Pauses(Duration);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = FIRST_PAUSE;
    }
}

/// What of a watch concerns these names, and which of them a list has.
struct Listing {
    names: BTreeSet<String>,
    /// In the list that is being read.
    listed: BTreeSet<String>,
}

impl Listing {
    fn digest(&mut self, event: Event) -> Option<WatchEvent> {
        match event {
            Err(error) => Some(WatchEvent::Failed(error.into())),
            Ok(watcher::Event::Init) => {
                self.listed.clear();
                None
            }
            Ok(watcher::Event::InitApply(application)) => {
                let ours = self.of_ours(application)?;
                self.listed.insert(ours.name().to_owned());
                Some(WatchEvent::Applied(Box::new(ours)))
            }
            Ok(watcher::Event::Apply(application)) => {
                Some(WatchEvent::Applied(Box::new(self.of_ours(application)?)))
            }
            Ok(watcher::Event::InitDone) => {
                Some(WatchEvent::Listed(std::mem::take(&mut self.listed)))
            }
            Ok(watcher::Event::Delete(application)) => {
                let ours = self.of_ours(application)?;
                let version = ours.version().ok()?;
                Some(WatchEvent::Gone { name: ours.name().to_owned(), version })
            }
        }
    }

    fn of_ours(&self, application: Application) -> Option<Application> {
        self.names.contains(application.name()).then_some(application)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tiphys_cluster::scripted::{self, Answer};

    use super::*;

    fn application(name: &str, version: &str) -> Value {
        json!({
            "metadata": { "name": name, "resourceVersion": version }, "spec": { "project": "p" },
        })
    }

    fn list(version: &str, names: &[&str]) -> Answer {
        let items: Vec<Value> = names.iter().map(|name| application(name, "7")).collect();
        Answer::Object(json!({ "metadata": { "resourceVersion": version }, "items": items }))
    }

    /// What a server tells that gives these answers, and then none. `a` and `b` are ours.
    async fn told(answers: Vec<Answer>, events: usize) -> Vec<String> {
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let client = scripted::client(move |_| {
            let never = || Answer::After(Duration::from_secs(3600), Box::new(Answer::Cut));
            answers.lock().unwrap().next().unwrap_or_else(never)
        });
        let names = ["a", "b"].map(str::to_owned).into();
        let text = |event: WatchEvent| match event {
            WatchEvent::Applied(application) => format!("seen {}", application.name()),
            WatchEvent::Gone { name, version } => format!("gone {name} {version}"),
            WatchEvent::Listed(names) => format!("listed {names:?}"),
            WatchEvent::Failed(error) => format!("failed {:?}", error.cause()),
        };
        applications(client, "argocd", names).take(events).map(text).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_ours_is_not_told() {
        let event = |kind: &str, name: &str, version: &str| {
            Answer::Object(json!({ "type": kind, "object": application(name, version) }))
        };
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
}
