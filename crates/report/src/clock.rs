//! Times as people read them in a log.

use tiphys_run::Time;

/// `+00:18:02`
pub(crate) fn elapsed(time: Time) -> String {
    let seconds = time.as_millis() / 1000;
    format!("+{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `18m0s`, `1h0m5s`, `42s`: every unit from the largest one down.
pub(crate) fn took(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        (_, _) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_the_contract() {
        assert_eq!(elapsed(Time::from_millis(1_082_999)), "+00:18:02");
        assert_eq!(elapsed(Time::from_millis(360_000_000)), "+100:00:00");
        let cases =
            [(0, "0s"), (999, "0s"), (42_000, "42s"), (1_080_000, "18m0s"), (3_605_000, "1h0m5s")];
        for (millis, text) in cases {
            assert_eq!(took(millis), text);
        }
    }
}
