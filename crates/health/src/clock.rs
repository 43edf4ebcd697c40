//! `os.time` and `os.date`, all that Argo CD's safe `os` has. In UTC, as in Argo CD's image.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use mlua::{Lua, LuaString, Table, Value};

#[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^52")]
fn number(seconds: i64) -> Value {
    Value::Number(seconds as f64)
}

fn now(fixed: Option<i64>) -> i64 {
    fixed.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// `fixed` replaces the clock, so that tests do not depend on it.
pub(crate) fn install(lua: &Lua, table: &Table, fixed: Option<i64>) -> mlua::Result<()> {
    let time = lua.create_function(move |_, fields: Option<Table>| match fields {
        None => Ok(number(now(fixed))),
        Some(fields) => time(&fields).map(number),
    })?;
    table.set("os_time", time)?;
    let date =
        lua.create_function(move |lua, (format, at): (Option<LuaString>, Option<f64>)| {
            #[expect(clippy::cast_possible_truncation, reason = "saturates, then is out of range")]
            let at = at.map_or_else(|| now(fixed), |at| at as i64);
            let format = format.map_or_else(|| "%c".to_owned(), |format| format.to_string_lossy());
            let format = format.trim_start_matches('!');
            let at = Timestamp::from_second(at).map_err(|_| outside())?;
            let at = Offset::UTC.to_datetime(at);
            if format.starts_with("*t") {
                return fields(lua, at).map(Value::Table);
            }
            lua.create_string(written(at, format)).map(Value::String)
        })?;
    table.set("os_date", date)
}

fn outside() -> mlua::Error {
    mlua::Error::runtime("the time is out of range")
}

/// Go's `time.Date`, which carries over what is too large: the 32nd of a month is the first of
/// the next.
fn time(fields: &Table) -> mlua::Result<i64> {
    let field = |name: &str, default: i64| -> mlua::Result<i64> {
        #[expect(clippy::cast_possible_truncation, reason = "as gopher-lua converts")]
        let field = match fields.raw_get::<Value>(name)? {
            Value::Number(number) => number as i64,
            Value::Integer(number) => number,
            _ => default,
        };
        Ok(field)
    };
    let (year, month) = (field("year", -1)?, field("month", -1)? - 1);
    let year = i16::try_from(year.saturating_add(month.div_euclid(12))).map_err(|_| outside())?;
    let month = i8::try_from(month.rem_euclid(12) + 1).map_err(|_| outside())?;
    let start = Date::new(year, month, 1).map_err(|_| outside())?.to_datetime(Time::midnight());
    let span = |days, hours, minutes, seconds| {
        Span::new()
            .try_days(days)
            .and_then(|span| span.try_hours(hours))
            .and_then(|span| span.try_minutes(minutes))
            .and_then(|span| span.try_seconds(seconds))
            .and_then(|span| start.checked_add(span))
    };
    let at = span(field("day", -1)? - 1, field("hour", 12)?, field("min", 0)?, field("sec", 0)?)
        .map_err(|_| outside())?;
    Ok(Offset::UTC.to_timestamp(at).map_err(|_| outside())?.as_second())
}

fn fields(lua: &Lua, at: DateTime) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("year", f64::from(at.year()))?;
    table.set("month", f64::from(at.month()))?;
    table.set("day", f64::from(at.day()))?;
    table.set("hour", f64::from(at.hour()))?;
    table.set("min", f64::from(at.minute()))?;
    table.set("sec", f64::from(at.second()))?;
    table.set("wday", f64::from(at.weekday().to_sunday_one_offset()))?;
    // Argo CD does not fill these in either.
    table.set("yday", 0.0)?;
    table.set("isdst", false)?;
    Ok(table)
}

/// Argo CD's formats, some of which are odd: `%a` is Go's layout `mon`, which is no layout.
fn written(at: DateTime, format: &str) -> String {
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let layout = match letters.next() {
            Some('a') => "mon",
            Some('A') => "%A",
            Some('b') => "%b",
            Some('B') => "%B",
            Some('c') => "%d %b %y %H:%M UTC",
            Some('d') => "%d",
            Some('F') => "%Y-%m-%d",
            Some('H') => "%H",
            Some('I') => "%I",
            Some('m') => "%m",
            Some('M') => "%M",
            Some('p') => "%p",
            Some('P') => "%P",
            Some('S') => "%S",
            Some('x') => "%H/%M/%S",
            Some('X') => "%H:%M:%S",
            Some('y') => "%y",
            Some('Y') => "%Y",
            Some('z') => "+0000",
            Some('Z') => "UTC",
            Some('w') => "%w",
            Some('%') => "%%",
            Some(other) => {
                out.push('%');
                out.push(other);
                continue;
            }
            None => break,
        };
        out.push_str(&at.strftime(layout).to_string());
    }
    out
}
