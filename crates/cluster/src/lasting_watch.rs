//! A watch that goes on whatever happens.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};

/// How long one call of a watch lasts, in seconds. A connection that died silently is noticed
/// five seconds later.
const CALL: u32 = 25;
/// How long a watch that failed waits before it tries again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Failures of a watch that are further apart than this have a time between them when it went well.
/// A call that goes well and has nothing to tell shows nothing else.
pub const LONGEST_GAP: Duration = Duration::from_secs(15);

type Event<K> = Result<watcher::Event<K>, watcher::Error>;

/// A watch that `begin` starts, with pauses after failures. It begins anew when the server refuses to go
/// on from where it was.
pub fn lasting_watch<K, S>(
    begin: impl Fn(watcher::Config) -> S + Send + 'static,
) -> BoxStream<'static, Event<K>>
where
    K: Send + 'static,
    S: Stream<Item = Event<K>> + Send + 'static,
{
    let begin = move || {
        let config = watcher::Config::default().timeout(CALL);
        begin(config).backoff(Pauses(FIRST_PAUSE)).boxed()
    };
    let watch = Watch { events: begin(), begin, expired: false };
    futures::stream::unfold(watch, |mut watch| async move {
        watch.next().await.map(|event| (event, watch))
    })
    .boxed()
}

struct Watch<K, B> {
    begin: B,
    events: BoxStream<'static, Event<K>>,
    expired: bool,
}

impl<K, B: Fn() -> BoxStream<'static, Event<K>>> Watch<K, B> {
    async fn next(&mut self) -> Option<Event<K>> {
        if std::mem::take(&mut self.expired) {
            tokio::time::sleep(FIRST_PAUSE).await;
            self.events = (self.begin)();
        }
        let event = self.events.next().await;
        self.expired = event.as_ref().is_some_and(is_expired);
        event
    }
}

/// Told within a watch, the watcher lists anew by itself; as the answer to its beginning, it would
/// ask for the same again for ever.
fn is_expired<K>(event: &Event<K>) -> bool {
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
