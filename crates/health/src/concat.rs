//! Makes `..` write numbers as gopher-lua does.
//!
//! Lua turns numbers into text inside the operator, as C's `%.14g`, and nothing can be hooked in
//! there. But an operand that is neither text nor number has its say. So every `a .. b` becomes
//! `a .. JOIN .. b`, where `JOIN` is such an operand; `prelude.lua` does the rest. Lines stay
//! where they are, so that errors point to the right ones.

/// The name of the operand within the script. Nobody would choose it.
const JOIN: &str = "__tiphys_join";

/// The script, ready to be called with the operand as its argument.
pub(crate) fn prepared(script: &str) -> String {
    let mut out = format!("local {JOIN} = ... ");
    let bytes = script.as_bytes();
    let mut at = 0;
    let mut copied = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if let Some(length) = skipped(rest) {
            at += length;
        } else if rest.starts_with(b"...") {
            at += 3;
        } else if rest.starts_with(b"..") {
            out.push_str(&script[copied..at]);
            out.push_str(".. ");
            out.push_str(JOIN);
            out.push_str(" ..");
            at += 2;
            copied = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&script[copied..]);
    out
}

/// The length of the comment, text, number or name that the source begins with.
fn skipped(source: &[u8]) -> Option<usize> {
    let line = || source.iter().position(|byte| *byte == b'\n').unwrap_or(source.len());
    match source[0] {
        b'-' if source.starts_with(b"--") => {
            Some(bracketed(&source[2..]).map_or_else(line, |length| length + 2))
        }
        b'[' => bracketed(source),
        quote @ (b'"' | b'\'') => {
            let mut at = 1;
            while at < source.len() && source[at] != quote && source[at] != b'\n' {
                // Whatever is escaped, also a line break, does not end the text.
                at += if source[at] == b'\\' { 2 } else { 1 };
            }
            Some((at + 1).min(source.len()))
        }
        // Names too, so that the digit in `a1..b` does not begin a number.
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
            let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            Some(source.iter().position(|byte| !word(byte)).unwrap_or(source.len()))
        }
        b'0'..=b'9' => Some(number(source)),
        _ => None,
    }
}

/// gopher-lua reads `1..2` as a malformed number, as Lua does: the dots belong to it.
fn number(source: &[u8]) -> usize {
    let mut at = 0;
    while at < source.len() {
        let sign = matches!(source[at], b'+' | b'-')
            && at > 0
            && matches!(source[at - 1], b'e' | b'E')
            && !source.starts_with(b"0x");
        if !(source[at].is_ascii_alphanumeric() || source[at] == b'.' || sign) {
            break;
        }
        at += 1;
    }
    at
}

/// The length of `[[...]]`, `[=[...]=]` and so on.
fn bracketed(source: &[u8]) -> Option<usize> {
    let level = source.get(1..)?.iter().take_while(|byte| **byte == b'=').count();
    if source[0] != b'[' || source.get(level + 1) != Some(&b'[') {
        return None;
    }
    let mut close = vec![b'='; level + 2];
    close[0] = b']';
    close[level + 1] = b']';
    let end = source.windows(close.len()).position(|window| window == close);
    Some(end.map_or(source.len(), |end| end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::prepared;

    fn body(script: &str) -> String {
        prepared(script).replacen("local __tiphys_join = ... ", "", 1).replace("__tiphys_join", "J")
    }

    #[test]
    fn only_the_operator_is_touched() {
        assert_eq!(body("x = a..b"), "x = a.. J ..b");
        assert_eq!(body("x = a1..b"), "x = a1.. J ..b");
        assert_eq!(body("f(...)"), "f(...)");
        assert_eq!(body("x = '..' -- a..b\ny = [[a..b]]"), "x = '..' -- a..b\ny = [[a..b]]");
        assert_eq!(
            body("--[==[ a..b ]] ]==] x = \"\\\"..\" .. y"),
            "--[==[ a..b ]] ]==] x = \"\\\"..\" .. J .. y"
        );
        assert_eq!(body("x = 1 .. 2"), "x = 1 .. J .. 2");
        assert_eq!(body("x = 1..2"), "x = 1..2");
        assert_eq!(body("a[b[1]]..c"), "a[b[1]].. J ..c");
    }

    #[test]
    fn what_never_ends_is_left_to_lua() {
        for script in ["'abc", "[[abc", "--[[abc", "'abc\\", "[", "[==", "-", "", "--"] {
            assert_eq!(body(script), script);
        }
    }
}
