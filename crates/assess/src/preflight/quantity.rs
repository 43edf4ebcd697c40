//! Kubernetes' quantities: `1930m`, `24564232Ki`, `110`.

/// In thousandths of the unit, rounded down; none, if it is no quantity.
#[must_use]
pub fn thousandths(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if number.is_empty() {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (times, over): (u128, u128) = match suffix {
        "n" => (1, 1_000_000),
        "u" => (1, 1_000),
        "m" => (1, 1),
        "" => (1_000, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "Ki" => (1_000 << 10, 1),
        "Mi" => (1_000 << 20, 1),
        "Gi" => (1_000 << 30, 1),
        "Ti" => (1_000 << 40, 1),
        _ => return None,
    };
    // Nine digits are more than any quantity has behind its point.
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let billionths: u128 = format!("{whole}{fraction}").parse().ok()?;
    u64::try_from(billionths.checked_mul(times)? / over / 1_000_000_000).ok()
}

/// In whole units, rounded down.
#[must_use]
pub fn units(text: &str) -> Option<u64> {
    thousandths(text).map(|thousandths| thousandths / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_real_nodes() {
        let cases = [
            ("2", Some(2_000)),
            ("1930m", Some(1_930)),
            ("0.5", Some(500)),
            ("1500000n", Some(1)),
            ("110", Some(110_000)),
            ("24564232Ki", Some(24_564_232 * 1_024 * 1_000)),
            ("1.5Gi", Some(3 * 1_024 * 1_024 * 512 * 1_000)),
            ("129M", Some(129_000_000_000)),
            ("", None),
            ("much", None),
            ("1Zi", None),
        ];
        for (text, thousandth) in cases {
            assert_eq!(thousandths(text), thousandth, "{text}");
        }
        assert_eq!(units("24564232Ki"), Some(24_564_232 * 1_024));
    }
}
