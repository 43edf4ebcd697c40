//! Times that come again and again: a cron schedule in a time zone.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::schedule::Schedule;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    time_zone: Option<String>,
    schedule: Schedule,
    zone: TimeZone,
}

/// Why there is no such time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("is not a cron schedule of five fields")]
    Schedule,
    #[error("never comes")]
    Never,
    #[error("is not a time zone")]
    TimeZone,
}

impl Cron {
    /// `time_zone` is an IANA name; UTC if there is none.
    pub fn new(text: &str, time_zone: Option<&str>) -> Result<Self, CronError> {
        let schedule = Schedule::parse(text).ok_or(CronError::Schedule)?;
        let any_day = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC).datetime();
        schedule.next(any_day).ok_or(CronError::Never)?;
        let zone = match time_zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| CronError::TimeZone)?,
        };
        let time_zone = time_zone.map(str::to_owned);
        Ok(Cron { text: text.to_owned(), time_zone, schedule, zone })
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As it is written; UTC if it is not.
    #[must_use]
    pub fn time_zone(&self) -> Option<&str> {
        self.time_zone.as_deref()
    }

    /// The first such time after this one.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let here = self.zone.to_datetime(after);
        self.zone.to_timestamp(self.schedule.next(here)?).ok()
    }

    /// Whether there was such a time so shortly before now.
    #[must_use]
    pub fn began_within(&self, duration: Duration, now: Timestamp) -> bool {
        let duration = SignedDuration::try_from(duration);
        let open = duration.ok().and_then(|long| self.schedule.is_open(long, &self.zone, now));
        open.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, zone, expected) in [
            ("@daily", None, CronError::Schedule),
            ("0 0 30 2 *", None, CronError::Never),
            ("0 0 * * *", Some("Atlantis"), CronError::TimeZone),
        ] {
            assert_eq!(Cron::new(text, zone), Err(expected), "{text}");
        }
    }

    #[test]
    fn an_hour_that_a_time_zone_skips_comes_a_bit_later() {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let cron = Cron::new("30 2 * * *", Some("Europe/Berlin")).unwrap();
        assert_eq!(cron.next(at("2026-03-28T12:00:00Z")), Some(at("2026-03-29T01:30:00Z")));
        assert_eq!(cron.next(at("2026-03-29T12:00:00Z")), Some(at("2026-03-30T00:30:00Z")));
    }
}
