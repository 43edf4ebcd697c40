//! Lines on their way into segments.

use std::time::Duration;

use tokio::time::Instant;

/// As large as a segment gets, unless one line alone is larger.
const LARGEST: usize = 64_000;
/// How long a line may wait for others.
const LONGEST: Duration = Duration::from_secs(30);

/// The lines of the segment that is still open.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Buffer {
    /// Takes a line, with its end; the segment before it, if that is now full.
    pub(super) fn push(&mut self, line: &str, now: Instant) -> Option<String> {
        let full = !self.text.is_empty() && self.text.len() + line.len() > LARGEST;
        let closed = if full { self.close() } else { None };
        self.text.push_str(line);
        self.since.get_or_insert(now);
        closed
    }

    /// When the segment is to be closed, if nothing fills it before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + LONGEST)
    }

    /// What there is.
    pub(super) fn close(&mut self) -> Option<String> {
        self.since = None;
        let text = std::mem::take(&mut self.text);
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_waits_half_a_minute_at_most() {
        let (mut buffer, now) = (Buffer::default(), Instant::now());
        assert_eq!(buffer.due(), None);
        assert_eq!(buffer.push("a\n", now), None);
        assert_eq!(buffer.push("b\n", now + Duration::from_secs(20)), None);
        assert_eq!(buffer.due(), Some(now + LONGEST));
        assert_eq!(buffer.close().as_deref(), Some("a\nb\n"));
        assert_eq!((buffer.due(), buffer.close()), (None, None));
    }

    proptest! {
        #[test]
        fn no_line_is_lost_and_segments_are_small(sizes in prop::collection::vec(1_usize..90_000, 0..20)) {
            let (mut buffer, now) = (Buffer::default(), Instant::now());
            let lines: Vec<String> = sizes.iter().map(|size| "x".repeat(*size) + "\n").collect();
            let mut closed: Vec<String> =
                lines.iter().filter_map(|line| buffer.push(line, now)).collect();
            closed.extend(buffer.close());
            prop_assert_eq!(closed.concat(), lines.concat());
            for segment in closed {
                prop_assert!(segment.len() <= LARGEST || segment.lines().count() == 1);
            }
        }
    }
}
