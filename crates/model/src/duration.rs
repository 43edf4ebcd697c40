//! Durations as people write them: `90s`, `18m`, `1h30m`.
//!
//! Whole seconds are the resolution of a platform file: Argo CD's own stamps have no finer one.

use std::time::Duration;

/// The longest duration that makes sense in a platform file. It catches a slip of the keyboard
/// (`300h` for `300m`) and keeps sums over whole platforms far from any overflow.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("the duration is empty")]
    Empty,
    #[error("a duration cannot be negative")]
    Negative,
    #[error("the number {0} has no unit")]
    NoUnit(String),
    #[error("a duration must consist of whole numbers")]
    Fraction,
    #[error("unknown unit {0:?}")]
    Unit(String),
    #[error("a number is missing before {0:?}")]
    NoNumber(String),
    #[error("units must go from large to small, each at most once")]
    Order,
    #[error("the duration is longer than seven days")]
    TooLong,
}

const UNITS: [(&str, u64); 3] = [("h", 3600), ("m", 60), ("s", 1)];

/// Parses `1h30m`, `18m`, `90s`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let mut seconds: u64 = 0;
    let mut units = UNITS.iter();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        if number.is_empty() {
            return Err(DurationError::NoNumber(unit.to_owned()));
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit(number.to_owned()));
        }
        if unit == "." {
            return Err(DurationError::Fraction);
        }
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(DurationError::Unit(unit.to_owned()));
        }
        let size = units
            .find(|(name, _)| *name == unit)
            .map(|(_, size)| *size)
            .ok_or(DurationError::Order)?;
        // A number that does not fit is certainly longer than the longest.
        let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
        seconds = number
            .checked_mul(size)
            .and_then(|more| seconds.checked_add(more))
            .ok_or(DurationError::TooLong)?;
        rest = tail;
    }
    let duration = Duration::from_secs(seconds);
    if duration > LONGEST { Err(DurationError::TooLong) } else { Ok(duration) }
}

/// Writes a duration the way [`parse`] reads it: `18m`, `1h30m`, `0s`. Fractions are dropped.
#[must_use]
pub fn format(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let text: String =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_people_write() {
        let cases = [("0s", 0), ("90s", 90), ("18m", 1080), ("1h30m", 5400), ("2h3m4s", 7384)];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        let cases = [
            ("", DurationError::Empty),
            ("-5m", DurationError::Negative),
            ("5", DurationError::NoUnit("5".into())),
            ("m", DurationError::NoNumber("m".into())),
            ("5 m", DurationError::Unit(" m".into())),
            ("5d", DurationError::Unit("d".into())),
            ("1.5h", DurationError::Fraction),
            ("1h0.5m", DurationError::Fraction),
            ("1.h", DurationError::Unit(".h".into())),
            ("5s1m", DurationError::Order),
            ("1m1m", DurationError::Order),
            ("169h", DurationError::TooLong),
            ("99999999999999999999h", DurationError::TooLong),
            ("18446744073709551615h", DurationError::TooLong),
        ];
        for (text, why) in cases {
            assert_eq!(parse(text), Err(why), "{text:?}");
        }
        assert_eq!(parse("168h"), Ok(LONGEST));
    }

    #[test]
    fn format_is_read_back() {
        for seconds in [0, 1, 59, 60, 61, 3599, 3600, 3661, 7200, 604_800] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse(&format(duration)), Ok(duration));
        }
        assert_eq!(format(Duration::from_millis(1999)), "1s");
    }
}
