//! Numbers as text, as gopher-lua writes them: through Go's `fmt`.

/// Whole numbers in full, others in the shortest form that reads back the same, with an exponent
/// for what is below 0.0001 or from a million on, as in Go's `%v`.
pub(crate) fn text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    // gopher-lua asks whether the number survives a conversion to a 64-bit integer.
    #[expect(clippy::cast_possible_truncation, reason = "compared right away")]
    #[expect(clippy::cast_precision_loss, reason = "compared right away")]
    #[expect(clippy::float_cmp, reason = "a whole number or not: there is no nearly")]
    let whole = {
        let whole = number as i64;
        (whole as f64 == number && whole != i64::MAX).then_some(whole)
    };
    match whole {
        Some(whole) => whole.to_string(),
        None => shortest(number),
    }
}

/// Go's `%v` of a float64.
pub(crate) fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn as_gopher_lua_writes_them() {
        // Each was printed by gopher-lua 1.1.1.
        let cases = [
            (1.0, "1"),
            (-0.0, "0"),
            (10.0 / 2.0, "5"),
            (1.0 / 3.0, "0.3333333333333333"),
            (0.1, "0.1"),
            (1_234_567.5, "1.2345675e+06"),
            (1e15, "1000000000000000"),
            (123_456_789_012_345_680.0, "123456789012345680"),
            (1e20, "1e+20"),
            (1e21, "1e+21"),
            (1e100, "1e+100"),
            (0.00001, "1e-05"),
            (0.0001, "0.0001"),
        ];
        for (number, expected) in cases {
            assert_eq!(text(number), expected, "{number:?}");
        }
    }
}
