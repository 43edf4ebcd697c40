//! What a cluster draws by lot, taken out of texts, so that they can be compared.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;

/// How long the ending of a pod's name is.
const ENDING: usize = 5;

/// The lots of one platform.
pub struct Lots {
    revision: String,
}

impl Lots {
    /// Commits have a time in them, so that no two are the same.
    #[must_use]
    pub fn new(revision: &str) -> Self {
        Lots { revision: revision.to_owned() }
    }

    /// Revisions, times, addresses, ids, and how often an event was seen, say nothing; neither do
    /// the names of pods, which begin with those of `replica_sets`. Of events, the order depends
    /// on when each was last seen, so they are sorted, and what then is the same is told once.
    #[must_use]
    pub fn normal(&self, text: &str, replica_sets: &[String]) -> String {
        let mut text = text.replace(&self.revision, &zeros(&self.revision));
        let short = self.revision.get(..12).unwrap_or(&self.revision);
        text = text.replace(short, &zeros(short));
        for set in replica_sets {
            text = unnamed(&text, set);
        }
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            lines.push(words(once(&unmeasured(&refused(line)))));
        }
        let is_event = |line: &String| line.starts_with("  event: ");
        for events in lines.chunk_by_mut(|a, b| is_event(a) && is_event(b)) {
            events.sort();
        }
        lines.dedup_by(|b, a| is_event(a) && a == b);
        lines.join("\n") + "\n"
    }
}

fn zeros(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { '0' } else { c }).collect()
}

/// `app-5f4d9c-x7k2p` of the ReplicaSet `app-5f4d9c` becomes `app-SET-POD`.
fn unnamed(text: &str, set: &str) -> String {
    let plain =
        set.rsplit_once('-').map_or_else(|| set.to_owned(), |(app, _)| format!("{app}-SET"));
    let mut parts = text.split(set);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += &plain;
        let ending = part.strip_prefix('-').and_then(|rest| rest.get(..ENDING));
        let is_ending =
            |ending: &&str| ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        match ending.filter(is_ending) {
            Some(_) => out += &format!("-POD{}", &part[1 + ENDING..]),
            None => out += part,
        }
    }
    out
}

/// Without ` (7 times)`.
fn once(line: &str) -> &str {
    match line.rsplit_once(" (") {
        Some((rest, count)) if count.ends_with(" times)") => rest,
        Some(_) | None => line,
    }
}

/// A busy machine takes longer to refuse a connection than a probe waits.
fn refused(line: &str) -> String {
    line.replace(": i/o timeout", ": connect: connection refused")
}

/// How many seconds passed until Argo CD looked.
fn unmeasured(line: &str) -> String {
    const QUESTION: &str = "was health assessed after it ended?";
    let Some((number, seen)) = line.split_once(QUESTION) else { return line.to_owned() };
    let gap = &seen[..seen.len() - seen.trim_start().len()];
    format!("{number}{QUESTION}{gap}0 s after its end")
}

fn words(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".:-".contains(c);
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        out += &rest[..start];
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        out += &word(&rest[..end]);
        rest = &rest[end..];
    }
    out + rest
}

/// As wide as it was where it stands in a column, so that the columns stay.
fn word(word: &str) -> String {
    let core = word.trim_end_matches(['.', ':']);
    let end = &word[core.len()..];
    let is_id = core.len() == 36 && core.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    if core.parse::<Timestamp>().is_ok() {
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        core.chars().map(digits).chain(end.chars()).collect()
    } else if is_id {
        format!("{}{end}", zeros(core))
    } else if let Ok(address) = core.parse::<SocketAddr>() {
        format!("ADDRESS:{}{end}", address.port())
    } else if core.parse::<IpAddr>().is_ok() {
        format!("ADDRESS{end}")
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_by_lot_goes_and_the_rest_stays() {
        let lots = Lots::new("0123456789abcdef0123456789abcdef01234567");
        let normal = |text: &str| lots.normal(text, &["app-5f4d9c".to_owned()]);
        let cases = [
            ("at 2026-11-15T12:00:07Z: well.", "at 0000-00-00T00:00:00Z: well."),
            ("a 0123456789ab b", "a 000000000000 b"),
            ("0123456789abcdef0123456789abcdef01234567", &"0".repeat(40)),
            (
                "dial tcp 10.0.3.7:80: refused by 10.0.3.8",
                "dial tcp ADDRESS:80: refused by ADDRESS",
            ),
            ("Pod/app-5f4d9c-x7k2p: no", "Pod/app-SET-POD: no"),
            ("ReplicaSet/app-5f4d9c: no", "ReplicaSet/app-SET: no"),
            ("dial tcp 10.0.3.7:1: i/o timeout", "dial tcp ADDRESS:1: connect: connection refused"),
            ("it failed (7 times)", "it failed"),
            (
                "3  yes  was health assessed after it ended?  in the same second",
                "3  yes  was health assessed after it ended?  0 s after its end",
            ),
            ("spec.replicas is 1 (or 2)", "spec.replicas is 1 (or 2)"),
            ("d9428888-122b-11e1-b85c-61cd3cbb3210", "00000000-0000-0000-0000-000000000000"),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text), format!("{expected}\n"), "{text}");
        }
    }

    #[test]
    fn events_are_sorted_and_told_once() {
        let lots = Lots::new("0123456789ab");
        let text = "z\n  event: b (2 times)\n  event: a\n  event: b (3 times)\ny\na\na\n";
        assert_eq!(lots.normal(text, &[]), "z\n  event: a\n  event: b\ny\na\na\n");
    }
}
