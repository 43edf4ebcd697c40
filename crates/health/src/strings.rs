//! The `string` library: what could take long or grow large in Lua's own is done here, within
//! limits, and with gopher-lua's results.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value, Variadic};

use crate::limits::Watch;
use crate::pattern::{Capture, Match, Pattern};
use crate::{format, value};

pub(crate) fn library(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let native: Table = lua.globals().get("string")?;
    for name in ["byte", "char", "len", "sub"] {
        table.set(name, native.get::<Value>(name)?)?;
    }
    add(lua, &table, "find", watch, find)?;
    add(lua, &table, "match", watch, first_match)?;
    add(lua, &table, "gsub", watch, gsub)?;
    add(lua, &table, "gmatch", watch, gmatch)?;
    table.set("gfind", table.get::<Value>("gmatch")?)?;
    add(lua, &table, "rep", watch, |lua, watch, (text, times): (LuaString, f64)| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let times = times.max(0.0) as usize;
        watch.text(text.as_bytes().len().saturating_mul(times))?;
        lua.create_string(text.as_bytes().repeat(times))
    })?;
    add(lua, &table, "lower", watch, |lua, watch, text: LuaString| {
        cased(lua, watch, &text, <[u8]>::to_ascii_lowercase, str::to_lowercase)
    })?;
    add(lua, &table, "upper", watch, |lua, watch, text: LuaString| {
        cased(lua, watch, &text, <[u8]>::to_ascii_uppercase, str::to_uppercase)
    })?;
    add(lua, &table, "reverse", watch, |lua, watch, text: LuaString| {
        watch.text(text.as_bytes().len())?;
        lua.create_string(text.as_bytes().iter().rev().copied().collect::<Vec<u8>>())
    })?;
    add(lua, &table, "format", watch, |lua, watch, args: MultiValue| {
        let args: Vec<Value> = args.into_iter().collect();
        let template = args.first().cloned().unwrap_or(Value::Nil);
        let template = argument(lua, template, 1, "format")?;
        lua.create_string(format::format(&template.as_bytes(), &args[1..], watch)?)
    })?;
    Ok(table)
}

type ConcatArgs = (Table, Option<LuaString>, Option<usize>, Option<usize>);

/// `table.concat`: here because it writes numbers and may grow.
pub(crate) fn table_concat(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Function> {
    let watch = Rc::clone(watch);
    lua.create_function(move |lua, (table, separator, from, to): ConcatArgs| {
        let mut out = Vec::new();
        let from = from.unwrap_or(1);
        let to = to.unwrap_or(table.raw_len());
        for index in from..=to {
            let item: Value = table.raw_get(index)?;
            if !matches!(item, Value::String(_) | Value::Number(_) | Value::Integer(_)) {
                let kind = value::kind(&item);
                let why = format!("invalid value ({kind}) at index {index} in table for concat");
                return Err(mlua::Error::runtime(why));
            }
            if let (Some(separator), true) = (&separator, index > from) {
                out.extend_from_slice(&separator.as_bytes());
            }
            watch.text(out.len() + value::length(&item))?;
            out.extend_from_slice(&value::text(&item));
            watch.text(out.len())?;
            watch.step()?;
        }
        lua.create_string(out)
    })
}

fn add<A, R, F>(lua: &Lua, table: &Table, name: &str, watch: &Rc<Watch>, f: F) -> mlua::Result<()>
where
    A: mlua::FromLuaMulti,
    R: mlua::IntoLuaMulti,
    F: Fn(&Lua, &Rc<Watch>, A) -> mlua::Result<R> + 'static,
{
    let watch = Rc::clone(watch);
    table.set(name, lua.create_function(move |lua, args: A| f(lua, &watch, args))?)
}

fn argument(lua: &Lua, value: Value, at: usize, function: &str) -> mlua::Result<LuaString> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Integer(_) => lua.create_string(value::text(&value)),
        other => Err(mlua::Error::runtime(format!(
            "bad argument #{at} to {function} (string expected, got {})",
            value::kind(&other)
        ))),
    }
}

fn cased(
    lua: &Lua,
    watch: &Watch,
    text: &LuaString,
    ascii: fn(&[u8]) -> Vec<u8>,
    unicode: fn(&str) -> String,
) -> mlua::Result<LuaString> {
    let bytes = text.as_bytes();
    watch.text(bytes.len())?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => lua.create_string(unicode(text)),
        Err(_) => lua.create_string(ascii(&bytes)),
    }
}

/// Where to begin, counted from 0; Lua counts from 1, or from the end below 0.
fn begin(from: Option<f64>, length: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, which is what is wanted")]
    let from = from.unwrap_or(1.0) as i64;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from = if from < 0 { length.saturating_add(from).max(0) } else { (from - 1).max(0) };
    usize::try_from(from).unwrap_or(usize::MAX)
}

type FindArgs = (LuaString, LuaString, Option<f64>, Value);

fn find(lua: &Lua, watch: &Rc<Watch>, args: FindArgs) -> mlua::Result<MultiValue> {
    let (text, pattern, from, plain) = args;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let place = |start: usize, end: usize| [number(start + 1), number(end)];
    if pattern.is_empty() {
        return Ok(MultiValue::from_iter(place(0, 0)));
    }
    let from = begin(from, text.len());
    if from > text.len() {
        return Ok(MultiValue::from_iter([Value::Nil]));
    }
    if !matches!(plain, Value::Nil | Value::Boolean(false)) {
        return Ok(match plainly(&text[from..], &pattern, watch)? {
            Some(at) => MultiValue::from_iter(place(from + at, from + at + pattern.len())),
            None => MultiValue::from_iter([Value::Nil]),
        });
    }
    let Some(found) = Pattern::parse(&pattern)?.find(&text, from, watch)? else {
        return Ok(MultiValue::from_iter([Value::Nil]));
    };
    let mut values: Vec<Value> = place(found.start, found.end).into();
    for capture in &found.captures {
        values.push(captured(lua, &text, *capture)?);
    }
    Ok(MultiValue::from_iter(values))
}

/// Where the text contains the other one as it is.
fn plainly(text: &[u8], wanted: &[u8], watch: &Watch) -> mlua::Result<Option<usize>> {
    for (at, window) in text.windows(wanted.len()).enumerate() {
        let same = window.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        if same == wanted.len() {
            return Ok(Some(at));
        }
        watch.steps(1 + same)?;
    }
    Ok(None)
}

type MatchArgs = (LuaString, LuaString, Option<f64>);

fn first_match(lua: &Lua, watch: &Rc<Watch>, args: MatchArgs) -> mlua::Result<MultiValue> {
    let (text, pattern, from) = args;
    let text = text.as_bytes();
    let from = begin(from, text.len());
    let found = Pattern::parse(&pattern.as_bytes())?.find(&text, from, watch)?;
    match found {
        Some(found) => Ok(MultiValue::from_iter(results(lua, &text, &found)?)),
        // Nothing at all, which `tostring` and the like take amiss.
        None => Ok(MultiValue::new()),
    }
}

fn gmatch(
    lua: &Lua,
    watch: &Rc<Watch>,
    (text, pattern): (LuaString, LuaString),
) -> mlua::Result<Function> {
    let pattern = Pattern::parse(&pattern.as_bytes())?;
    let watch = Rc::clone(watch);
    let next = Cell::new(Some(0));
    // The text is kept by value: a Lua text inside of a Rust closure is out of the collector's
    // sight, and two that hold each other would never go.
    let text: Box<[u8]> = text.as_bytes().to_vec().into();
    lua.create_function(move |lua, _: Variadic<Value>| {
        let found = match next.get() {
            Some(from) => pattern.find(&text, from, &watch)?,
            None => None,
        };
        let Some(found) = found else {
            next.set(None);
            return Ok(MultiValue::from_iter([Value::Nil]));
        };
        next.set((!pattern.anchored()).then(|| found.end.max(found.start + 1)));
        Ok(MultiValue::from_iter(results(lua, &text, &found)?))
    })
}

type GsubArgs = (LuaString, LuaString, Value, Option<f64>);

fn gsub(lua: &Lua, watch: &Rc<Watch>, args: GsubArgs) -> mlua::Result<(LuaString, usize)> {
    let (text, pattern, with, limit) = args;
    let with = match with {
        Value::Number(_) | Value::Integer(_) => Value::String(argument(lua, with, 3, "gsub")?),
        with => with,
    };
    let pattern = Pattern::parse(&pattern.as_bytes())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below 0")]
    let limit = limit.filter(|limit| *limit >= 0.0).map_or(usize::MAX, |limit| limit as usize);
    // A copy: the replacement may call back into Lua.
    let text: Vec<u8> = text.as_bytes().to_vec();
    let (mut out, mut copied, mut from, mut count) = (Vec::new(), 0, 0, 0);
    while count < limit && from <= text.len() {
        let Some(found) = pattern.find(&text, from, watch)? else { break };
        count += 1;
        out.extend_from_slice(&text[copied..found.start]);
        match replacement(lua, &text, &found, &with, watch)? {
            Some(new) => out.extend_from_slice(&new),
            None => out.extend_from_slice(&text[found.start..found.end]),
        }
        watch.text(out.len())?;
        copied = found.end;
        from = found.end.max(found.start + 1);
        if pattern.anchored() {
            break;
        }
    }
    watch.text(out.len() + text.len() - copied)?;
    out.extend_from_slice(&text[copied..]);
    Ok((lua.create_string(out)?, count))
}

fn replacement(
    lua: &Lua,
    text: &[u8],
    found: &Match,
    with: &Value,
    watch: &Watch,
) -> mlua::Result<Option<Vec<u8>>> {
    let value = match with {
        Value::String(template) => {
            return expand(text, found, &template.as_bytes(), watch).map(Some);
        }
        Value::Table(table) => {
            let key = results(lua, text, found)?.into_iter().next();
            watch.call(|| table.get::<Value>(key.unwrap_or(Value::Nil)))?
        }
        Value::Function(function) => {
            let captures = MultiValue::from_iter(results(lua, text, found)?);
            watch.call(|| function.call::<Value>(captures))?
        }
        other => {
            let kind = value::kind(other);
            let why = format!("bad argument #3 to gsub (string, table or function, got {kind})");
            return Err(mlua::Error::runtime(why));
        }
    };
    Ok(match value {
        Value::Nil | Value::Boolean(false) => None,
        Value::String(_) | Value::Number(_) | Value::Integer(_) => Some(value::text(&value)),
        _ => Some(Vec::new()),
    })
}

/// `%1` is the first capture, `%0` the match, `%%` a percent sign.
fn expand(text: &[u8], found: &Match, template: &[u8], watch: &Watch) -> mlua::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = template.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(digit @ b'0'..=b'9') => {
                let index = usize::from(digit - b'0');
                let whole = Capture::Text(found.start, found.end);
                let capture = match index {
                    0 => Some(whole),
                    1 if found.captures.is_empty() => Some(whole),
                    index => found.captures.get(index - 1).copied(),
                };
                match capture {
                    Some(Capture::Text(from, to)) => out.extend_from_slice(&text[from..to]),
                    Some(Capture::Position(at)) => out.extend_from_slice(at.to_string().as_bytes()),
                    None => return Err(mlua::Error::runtime("invalid capture index")),
                }
            }
            Some(b'%') | None => out.push(b'%'),
            Some(other) => out.extend_from_slice(&[b'%', other]),
        }
        watch.text(out.len())?;
    }
    Ok(out)
}

/// The captures, or the whole match if there are none.
fn results(lua: &Lua, text: &[u8], found: &Match) -> mlua::Result<Vec<Value>> {
    if found.captures.is_empty() {
        return Ok(vec![captured(lua, text, Capture::Text(found.start, found.end))?]);
    }
    found.captures.iter().map(|capture| captured(lua, text, *capture)).collect()
}

fn captured(lua: &Lua, text: &[u8], capture: Capture) -> mlua::Result<Value> {
    match capture {
        Capture::Text(from, to) => Ok(Value::String(lua.create_string(&text[from..to])?)),
        Capture::Position(at) => Ok(number(at)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "positions are far below 2^52")]
fn number(number: usize) -> Value {
    Value::Number(number as f64)
}
