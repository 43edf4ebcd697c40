//! Waiting for what should happen, and not for ever.

use std::time::{Duration, Instant};

const WAIT_LIMIT: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Waits until something holds; `what` says it, if it never does.
pub async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < WAIT_LIMIT, "{what}: not within {} s", WAIT_LIMIT.as_secs());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
