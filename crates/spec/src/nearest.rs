//! "Did you mean …?"

/// The candidate that `text` is probably a slip of, if one is close enough. The first wins
/// among equals, so sorted candidates give the same answer every time.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = text.chars().count();
    // One slip in three characters still looks like the same word; more is guessing.
    let most = (length / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        // Byte length bounds the distance from below cheaply: names are ASCII.
        if candidate.len().abs_diff(text.len()) > most {
            continue;
        }
        let distance = strsim::osa_distance(text, candidate);
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_finds_slips_and_nothing_else() {
        let names = ["ceph-cluster", "ceph-operator", "vault"];
        assert_eq!(nearest("ceph-clutser", names), Some("ceph-cluster"));
        assert_eq!(nearest("vaults", names), Some("vault"));
        assert_eq!(nearest("keycloak", names), None);
        assert_eq!(nearest("", names), None);
    }
}
