//! Scalars, and what the core schema of YAML 1.2 takes them for.

use std::borrow::Cow;

use crate::diagnostic::quoted;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar<'t> {
    pub(crate) text: &'t str,
    /// Written without quotes, so that it may mean something other than text.
    pub(crate) plain: bool,
}

/// What a scalar means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning {
    Null,
    Bool(bool),
    /// An integer; `None` if it does not fit.
    Integer(Option<i64>),
    Float,
    Text,
}

impl Scalar<'_> {
    pub(crate) fn meaning(self) -> Meaning {
        if !self.plain {
            return Meaning::Text;
        }
        match self.text {
            "" | "~" | "null" | "Null" | "NULL" => Meaning::Null,
            "true" | "True" | "TRUE" => Meaning::Bool(true),
            "false" | "False" | "FALSE" => Meaning::Bool(false),
            text => number(text),
        }
    }

    pub(crate) fn noun(self) -> Cow<'static, str> {
        match self.meaning() {
            Meaning::Null => "nothing".into(),
            Meaning::Bool(value) => if value { "`true`" } else { "`false`" }.into(),
            Meaning::Integer(_) | Meaning::Float => {
                format!("the number {}", quoted(self.text)).into()
            }
            Meaning::Text => format!("the text {}", quoted(self.text)).into(),
        }
    }
}

fn number(text: &str) -> Meaning {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let radix = |prefix, radix| {
        let digits: &str = text.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
            .then(|| Meaning::Integer(i64::from_str_radix(digits, radix).ok()))
    };
    if let Some(integer) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return integer;
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Meaning::Integer(text.parse().ok());
    }
    let special =
        [".inf", ".Inf", ".INF"].contains(&unsigned) || [".nan", ".NaN", ".NAN"].contains(&text);
    if special || is_decimal(unsigned) { Meaning::Float } else { Meaning::Text }
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction) && mantissa != ".",
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_fits && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        use Meaning::{Bool, Float, Integer, Null, Text};
        let cases = [
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("true", Bool(true)),
            ("False", Bool(false)),
            ("yes", Text),
            ("12", Integer(Some(12))),
            ("-3", Integer(Some(-3))),
            ("+3", Integer(Some(3))),
            ("0x1F", Integer(Some(31))),
            ("0o17", Integer(Some(15))),
            ("0x", Text),
            ("99999999999999999999", Integer(None)),
            ("1.10", Float),
            ("1.", Float),
            (".5", Float),
            (".", Text),
            ("-", Text),
            ("1e3", Float),
            ("1e", Text),
            ("e3", Text),
            (".inf", Float),
            ("-.INF", Float),
            (".nan", Float),
            ("-.nan", Text),
            ("1.2.3", Text),
            ("18m", Text),
        ];
        for (text, meaning) in cases {
            assert_eq!(Scalar { text, plain: true }.meaning(), meaning, "{text:?}");
            assert_eq!(Scalar { text, plain: false }.meaning(), Text);
        }
    }
}
