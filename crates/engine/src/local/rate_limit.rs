//! How fast requests may follow each other: a client that asks for too much at once can wedge
//! Argo CD's controller.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Requests in a row that need not wait.
const BURST: u32 = 20;
/// One more for each of these.
const INTERVAL: Duration = Duration::from_millis(50);

/// Lets 20 requests a second pass, and as many at once after a pause.
pub(super) struct RateLimit {
    /// When all of the burst is there again.
    full_at: Mutex<Instant>,
    waited: std::sync::Mutex<Waited>,
}

/// What the limit has cost.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    requests: u32,
    longest: Duration,
}

impl RateLimit {
    pub(super) fn new() -> Self {
        RateLimit { full_at: Mutex::new(Instant::now()), waited: std::sync::Mutex::default() }
    }

    /// What the limit has cost, in words; nothing if nobody had to wait.
    pub(super) fn told(&self) -> Option<String> {
        let Waited { requests, longest } =
            self.waited.lock().map(|waited| *waited).unwrap_or_default();
        (requests > 0).then(|| {
            format!(
                "{requests} requests waited for their turn, the longest for {} ms: at most {} a \
                 second are sent",
                longest.as_millis(),
                Duration::from_secs(1).as_millis() / INTERVAL.as_millis(),
            )
        })
    }

    /// Returns when the next request may be sent.
    pub(super) async fn wait(&self) {
        let (turn, now) = {
            let mut full_at = self.full_at.lock().await;
            let now = Instant::now();
            *full_at = (*full_at).max(now) + INTERVAL;
            (*full_at - INTERVAL * BURST, now)
        };
        let wait = turn.saturating_duration_since(now);
        if !wait.is_zero()
            && let Ok(mut waited) = self.waited.lock()
        {
            waited.requests += 1;
            waited.longest = waited.longest.max(wait);
        }
        tokio::time::sleep_until(turn).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_waits() {
        let rate_limit = RateLimit::new();
        let began = Instant::now();
        for _ in 0..BURST {
            rate_limit.wait().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(rate_limit.told(), None);
        for _ in 0..40 {
            rate_limit.wait().await;
        }
        let took = began.elapsed();
        assert!(
            took >= Duration::from_millis(1_950) && took <= Duration::from_millis(2_100),
            "{took:?}"
        );
        let told = rate_limit.told().unwrap();
        assert!(told.starts_with("40 requests waited") && told.contains("at most 20 a second"));
    }
}
