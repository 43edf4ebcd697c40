//! Waiting for what should happen, and not for ever.

use std::time::{Duration, Instant};

const WAIT_LIMIT: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Waits until something holds; `what` says it, if it never does.
pub async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    until_within(WAIT_LIMIT, what, holds).await;
}

/// The same, for what takes its time.
pub async fn until_within<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    holds: impl Fn() -> F,
) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < limit, "{what}: not within {} s", limit.as_secs());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
