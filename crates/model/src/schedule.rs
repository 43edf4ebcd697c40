//! Cron schedules of five fields, as Argo CD reads them (robfig/cron).

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How many years ahead a schedule is searched for its next time.
const YEARS: i16 = 5;

/// Minutes, hours, days and months, each as a set of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: Days,
    months: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Days {
    of_month: u64,
    of_week: u64,
    /// One of the two leaves all days open, so the other decides alone. Otherwise a day that one of
    /// them has is enough.
    one_is_open: bool,
}

/// What a field may contain.
struct Field {
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const MINUTE: Field = Field { first: 0, last: 59, names: &[] };
const HOUR: Field = Field { first: 0, last: 23, names: &[] };
const DAY_OF_MONTH: Field = Field { first: 1, last: 31, names: &[] };
const MONTH: Field = Field {
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAY_OF_WEEK: Field =
    Field { first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl Schedule {
    /// Returns `None` if the text is not a valid schedule.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = fields[..] else { return None };
        let (of_month, every_day) = DAY_OF_MONTH.parse(day_of_month)?;
        let (of_week, every_weekday) = DAY_OF_WEEK.parse(day_of_week)?;
        Some(Schedule {
            minutes: MINUTE.parse(minute)?.0,
            hours: HOUR.parse(hour)?.0,
            days: Days { of_month, of_week, one_is_open: every_day || every_weekday },
            months: MONTH.parse(month)?.0,
        })
    }

    /// Whether a window that this schedule opens is open now, as `SyncWindow.Active` of Argo CD says
    /// it: the offset of now counts for its beginning too, and a schedule that never comes counts as
    /// open. Returns `None` if the duration is out of range.
    #[must_use]
    pub fn is_open(
        &self,
        duration: SignedDuration,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Option<bool> {
        let here = zone.to_offset(now).to_datetime(now);
        let from = here.checked_sub(duration).ok()?;
        Some(self.next(from).is_none_or(|began| began < here))
    }

    /// The first time after this one, if there is one in the next years.
    #[must_use]
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let last_year = after.year().saturating_add(YEARS);
        let mut date = after.date();
        while date.year() <= last_year {
            if self.is_on(date) {
                let mut times = self.times().map(|time| date.to_datetime(time));
                if let Some(found) = times.find(|found| *found > after) {
                    return Some(found);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn is_on(&self, date: Date) -> bool {
        let on_day = has(self.days.of_month, date.day());
        let on_weekday = has(self.days.of_week, date.weekday().to_sunday_zero_offset());
        let day = if self.days.one_is_open { on_day && on_weekday } else { on_day || on_weekday };
        day && has(self.months, date.month())
    }

    /// The times of a day on which it is on, in order.
    fn times(&self) -> impl Iterator<Item = Time> {
        let hours = (0..24_i8).filter(|hour| has(self.hours, *hour));
        hours.flat_map(|hour| {
            let minutes = (0..60_i8).filter(|minute| has(self.minutes, *minute));
            minutes.filter_map(move |minute| Time::new(hour, minute, 0, 0).ok())
        })
    }
}

fn has(bits: u64, number: i8) -> bool {
    bits >> number & 1 == 1
}

impl Field {
    /// The numbers, and whether the field leaves all of them open.
    fn parse(&self, text: &str) -> Option<(u64, bool)> {
        let mut bits = 0;
        let mut open = false;
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (numbers, every) = self.range(range)?;
            bits |= numbers;
            open |= every;
        }
        Some((bits, open))
    }

    /// `*`, `?`, `N` or `N-M`, each with an optional `/STEP`. `N/STEP` goes on to the end.
    fn range(&self, text: &str) -> Option<(u64, bool)> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (text, None),
        };
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (low, Some(high)),
            None => (range, None),
        };
        let every = low == "*" || low == "?";
        let first = if every { self.first } else { self.number(low)? };
        let last = match high {
            _ if every => self.last,
            Some(high) => self.number(high)?,
            None if step.is_some() => self.last,
            None => first,
        };
        let step = step.unwrap_or(1);
        if first < self.first || last > self.last || first > last || step == 0 {
            return None;
        }
        let numbers = (first..=last).step_by(usize::try_from(step).ok()?);
        Some((numbers.fold(0, |bits, number| bits | 1 << number), every && step == 1))
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        match named {
            Some(position) => Some(self.first + u32::try_from(position).ok()?),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let found = Schedule::parse(schedule).unwrap().next(after.parse().unwrap());
        found.map_or_else(|| "never".to_owned(), |found| found.to_string())
    }

    /// Cases of robfig/cron's own `TestNext`, and what differs from other crons.
    #[test]
    fn the_next_time_is_the_one_that_cron_has() {
        for (schedule, after, expected) in [
            ("0/15 * * * *", "2012-07-09T14:45:00", "2012-07-09T15:00:00"),
            ("0/15 * * * *", "2012-07-09T14:59:59", "2012-07-09T15:00:00"),
            ("20-35/15 * * * *", "2012-07-09T15:45:00", "2012-07-09T16:20:00"),
            ("*/15 * * * *", "2012-07-09T23:46:00", "2012-07-10T00:00:00"),
            ("0/15 10-12 * * *", "2012-07-09T23:35:51", "2012-07-10T10:00:00"),
            ("0 0 9 apr-oct ?", "2012-07-09T23:35:00", "2012-08-09T00:00:00"),
            ("0 0 * feb Mon", "2012-07-09T23:35:00", "2013-02-04T00:00:00"),
            ("0 0 29 feb ?", "2012-07-09T23:35:00", "2016-02-29T00:00:00"),
            // One of the two is enough where both are restricted.
            ("0 0 13 * fri", "2012-07-09T00:00:00", "2012-07-13T00:00:00"),
            ("0 0 13 * fri", "2012-07-13T00:00:00", "2012-07-20T00:00:00"),
            // A step above one restricts.
            ("0 0 */2 * sun", "2012-07-09T00:00:00", "2012-07-11T00:00:00"),
            // Not the moment itself.
            ("30 8 * * *", "2012-07-09T08:30:00", "2012-07-10T08:30:00"),
            ("30 8 * * *", "2012-07-09T08:29:59.9", "2012-07-09T08:30:00"),
            ("1,2, 3 * * *", "2012-07-09T03:01:00", "2012-07-09T03:02:00"),
            ("0 0 30 2 *", "2012-07-09T23:35:00", "never"),
        ] {
            assert_eq!(next(schedule, after), expected, "{schedule} after {after}");
        }
    }

    #[test]
    fn what_argo_cd_does_not_accept_is_no_schedule() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "5-3 * * * *",
            "*/0 * * * *",
            "*/x * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "x * * * *",
            "CRON_TZ=UTC * * * *",
        ] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }
}
