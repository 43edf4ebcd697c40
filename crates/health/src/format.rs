//! `string.format`, as gopher-lua does it: through Go's `fmt.Sprintf`.

use mlua::Value;

use crate::limits::Watch;
use crate::{number, value};

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five flags that do not depend on each other")]
struct Directive {
    minus: bool,
    zero: bool,
    plus: bool,
    space: bool,
    sharp: bool,
    width: usize,
    precision: Option<usize>,
}

pub(crate) fn format(template: &[u8], args: &[Value], watch: &Watch) -> mlua::Result<Vec<u8>> {
    let mut args = args.iter();
    let mut out = Vec::with_capacity(template.len());
    let mut at = 0;
    while at < template.len() {
        watch.step()?;
        if template[at] != b'%' {
            out.push(template[at]);
            at += 1;
            continue;
        }
        let (directive, verb) = read(template, &mut at);
        match verb {
            None => out.extend_from_slice(b"%!(NOVERB)"),
            Some(b'%') => out.push(b'%'),
            Some(verb) => {
                watch.text(out.len() + directive.width + directive.precision.unwrap_or(0))?;
                if let Some(arg) = args.next() {
                    watch.text(out.len() + value::length(arg))?;
                    write(&mut out, &directive, verb, arg);
                } else {
                    out.extend_from_slice(b"%!");
                    out.push(verb);
                    out.extend_from_slice(b"(MISSING)");
                }
            }
        }
        watch.text(out.len())?;
    }
    Ok(out)
}

/// Reads one directive; `at` stands on its `%`, and behind it afterwards.
fn read(template: &[u8], at: &mut usize) -> (Directive, Option<u8>) {
    let mut directive = Directive::default();
    *at += 1;
    loop {
        match template.get(*at) {
            Some(b'-') => directive.minus = true,
            Some(b'0') => directive.zero = true,
            Some(b'+') => directive.plus = true,
            Some(b' ') => directive.space = true,
            Some(b'#') => directive.sharp = true,
            _ => break,
        }
        *at += 1;
    }
    directive.width = count(template, at);
    if template.get(*at) == Some(&b'.') {
        *at += 1;
        directive.precision = Some(count(template, at));
    }
    let verb = template.get(*at).copied();
    *at += usize::from(verb.is_some());
    (directive, verb)
}

fn count(template: &[u8], at: &mut usize) -> usize {
    let mut count = 0_usize;
    while let Some(digit @ b'0'..=b'9') = template.get(*at) {
        count = count.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        *at += 1;
    }
    // Go gives up at a million.
    count.min(1_000_000)
}

fn write(out: &mut Vec<u8>, directive: &Directive, verb: u8, arg: &Value) {
    match arg {
        Value::Number(number) => numeric(out, directive, verb, *number),
        #[expect(clippy::cast_precision_loss, reason = "numbers are floating point in gopher-lua")]
        Value::Integer(number) => numeric(out, directive, verb, *number as f64),
        Value::String(text) => textual(out, directive, verb, &text.as_bytes()),
        other => textual(out, directive, verb, &value::text(other)),
    }
}

fn textual(out: &mut Vec<u8>, directive: &Directive, verb: u8, text: &[u8]) {
    match verb {
        b's' | b'v' | b'd' | b'i' => {
            let cut = directive.precision.unwrap_or(usize::MAX);
            let kept: String = String::from_utf8_lossy(text).chars().take(cut).collect();
            pad(out, directive, &kept);
        }
        b'q' => pad(out, directive, &format!("{:?}", String::from_utf8_lossy(text))),
        b'x' => pad(out, directive, &hex(text, false)),
        b'X' => pad(out, directive, &hex(text, true)),
        verb => {
            let text = String::from_utf8_lossy(text);
            out.extend_from_slice(format!("%!{}(string={text})", char::from(verb)).as_bytes());
        }
    }
}

fn hex(text: &[u8], upper: bool) -> String {
    let one = |byte: &u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    text.iter().map(one).collect()
}

fn numeric(out: &mut Vec<u8>, directive: &Directive, verb: u8, number: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "as Go converts, and gopher-lua asks for")]
    let whole = number as i64;
    let digits = whole.unsigned_abs();
    let body = match verb {
        b's' => return textual(out, directive, b's', number::text(number).as_bytes()),
        b'q' => return textual(out, directive, b'q', number::text(number).as_bytes()),
        b'd' | b'i' => digits.to_string(),
        b'x' => format!("{}{digits:x}", if directive.sharp { "0x" } else { "" }),
        b'X' => format!("{}{digits:X}", if directive.sharp { "0X" } else { "" }),
        b'o' => format!("{digits:o}"),
        b'b' => format!("{digits:b}"),
        b'c' => {
            let character =
                u32::try_from(whole).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}');
            return pad(out, directive, character.encode_utf8(&mut [0; 4]));
        }
        b'f' | b'F' => format!("{:.*}", directive.precision.unwrap_or(6), number.abs()),
        b'e' | b'E' => exponent(number.abs(), directive.precision.unwrap_or(6), verb),
        b'g' | b'G' => general(number.abs(), directive.precision),
        b'v' => number::text(number.abs()),
        verb => {
            let text = number::text(number);
            return out
                .extend_from_slice(format!("%!{}(float64={text})", char::from(verb)).as_bytes());
        }
    };
    let negative = match verb {
        b'd' | b'i' | b'x' | b'X' | b'o' | b'b' => whole < 0,
        _ => number.is_sign_negative() && !number.is_nan(),
    };
    let sign = match (negative, directive.plus, directive.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    if directive.zero && !directive.minus {
        let missing = directive.width.saturating_sub(sign.len() + body.len());
        return out.extend_from_slice(format!("{sign}{}{body}", "0".repeat(missing)).as_bytes());
    }
    pad(out, directive, &format!("{sign}{body}"));
}

/// `1.500000e+03`.
fn exponent(number: f64, precision: usize, verb: u8) -> String {
    let rust = format!("{number:.precision$e}");
    let Some((digits, exponent)) = rust.split_once('e') else { return rust };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{}{sign}{:02}", char::from(verb), exponent.abs())
}

/// `%g`: the shortest text, or so many significant digits.
fn general(number: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else { return number::shortest(number) };
    let precision = precision.max(1);
    let scientific = exponent(number, precision - 1, b'e');
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or_default();
    let trim = |text: &str| {
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        if text.contains('.') { trimmed.to_owned() } else { text.to_owned() }
    };
    let places = i32::try_from(precision).unwrap_or(i32::MAX);
    if power < -4 || power >= places {
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{exponent}", trim(digits));
    }
    let decimals = usize::try_from(places - 1 - power).unwrap_or_default();
    trim(&format!("{number:.decimals$}"))
}

fn pad(out: &mut Vec<u8>, directive: &Directive, text: &str) {
    let missing = directive.width.saturating_sub(text.chars().count());
    let fill = " ".repeat(missing);
    let padded = if directive.minus { format!("{text}{fill}") } else { format!("{fill}{text}") };
    out.extend_from_slice(padded.as_bytes());
}
