//! One watch on Applications.

use std::collections::{BTreeMap, BTreeSet};

use futures::{Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::application::Application;
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, chain};

/// How long one call of the watch lasts, in seconds. A connection that died silently is noticed
/// five seconds later.
const CALL: u32 = 25;
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
    /// All that there is has been seen once.
    Listed,
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
            other => WatchError::Stream(Box::new(other)),
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
    let config = watcher::Config::default().timeout(CALL).page_size(PAGE);
    let mut known = Listing { names, versions: BTreeMap::new(), listed: None };
    watcher(api, config)
        .default_backoff()
        .flat_map(move |event| futures::stream::iter(known.digest(event)))
}

/// What has been seen, so that a new list shows what is missing in it.
struct Listing {
    names: BTreeSet<String>,
    versions: BTreeMap<String, u64>,
    /// Names in the list that is being read.
    listed: Option<BTreeSet<String>>,
}

impl Listing {
    fn digest(
        &mut self,
        event: Result<watcher::Event<Application>, watcher::Error>,
    ) -> Vec<WatchEvent> {
        match event {
            Err(error) => vec![WatchEvent::Failed(error.into())],
            Ok(watcher::Event::Init) => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Ok(watcher::Event::InitApply(application) | watcher::Event::Apply(application)) => {
                self.seen(application).into_iter().collect()
            }
            Ok(watcher::Event::InitDone) => self.compare(),
            Ok(watcher::Event::Delete(application)) => {
                let name = application.name().to_owned();
                let known = self.versions.remove(&name);
                let version = application.version().ok().max(known.map(|known| known + 1));
                version.map(|version| WatchEvent::Gone { name, version }).into_iter().collect()
            }
        }
    }

    fn seen(&mut self, application: Application) -> Option<WatchEvent> {
        let name = application.name();
        if !self.names.contains(name) {
            return None;
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(name.to_owned());
        }
        let version = application.version().unwrap_or_default();
        self.versions.insert(name.to_owned(), version);
        Some(WatchEvent::Applied(Box::new(application)))
    }

    /// What was known and is not in the new list is gone.
    fn compare(&mut self) -> Vec<WatchEvent> {
        let listed = self.listed.take().unwrap_or_default();
        let (there, missing): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.versions).into_iter().partition(|(n, _)| listed.contains(n));
        self.versions = there;
        let gone = missing.into_iter();
        let gone = gone.map(|(name, version)| WatchEvent::Gone { name, version: version + 1 });
        gone.chain([WatchEvent::Listed]).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(name: &str, version: &str) -> Application {
        let value = json!({
            "metadata": { "name": name, "resourceVersion": version }, "spec": { "project": "p" },
        });
        serde_json::from_value(value).unwrap()
    }

    fn known() -> Listing {
        let names = ["a", "b"].map(str::to_owned).into();
        Listing { names, versions: BTreeMap::new(), listed: None }
    }

    fn told(known: &mut Listing, event: watcher::Event<Application>) -> Vec<String> {
        let text = |news: WatchEvent| match news {
            WatchEvent::Applied(application) => format!("seen {}", application.name()),
            WatchEvent::Gone { name, version } => format!("gone {name} {version}"),
            WatchEvent::Listed => "listed".to_owned(),
            WatchEvent::Failed(error) => error.to_string(),
        };
        known.digest(Ok(event)).into_iter().map(text).collect()
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut known = known();
        told(&mut known, watcher::Event::Init);
        for name in ["a", "b", "other"] {
            told(&mut known, watcher::Event::InitApply(application(name, "7")));
        }
        assert_eq!(told(&mut known, watcher::Event::InitDone), ["listed"]);
        told(&mut known, watcher::Event::Init);
        told(&mut known, watcher::Event::InitApply(application("b", "9")));
        assert_eq!(told(&mut known, watcher::Event::InitDone), ["gone a 8", "listed"]);
    }

    #[test]
    fn what_is_not_ours_is_not_told() {
        let mut known = known();
        assert!(told(&mut known, watcher::Event::Apply(application("other", "7"))).is_empty());
        assert_eq!(told(&mut known, watcher::Event::Apply(application("a", "7"))), ["seen a"]);
        assert_eq!(told(&mut known, watcher::Event::Delete(application("a", "8"))), ["gone a 8"]);
    }
}
