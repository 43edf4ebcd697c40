//! Texts inside YAML.

/// A text as YAML reads it back: plain where that is certain, in quotes otherwise.
pub(super) fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !WORDS.contains(&text);
    // What JSON quotes, YAML reads.
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// A list in one line.
pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| scalar(text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_texts_are_plain() {
        assert_eq!(scalar("ceph-cluster"), "ceph-cluster");
        for text in ["1e3", "null", "a: b", "x#", "", "0s"] {
            assert_eq!(scalar(text), format!("\"{text}\""));
        }
        assert_eq!(list(&["a".to_owned(), "12".to_owned()]), "[a, \"12\"]");
    }
}
