//! Wildcards as Argo CD understands them.

/// Whether `*` may stand for a slash: in `argocd-cm` and sync windows it may, in the names of
/// directories not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Star {
    Anything,
    WithinOne,
}

/// `*`, `?`, `[a-c]`, `[!x]` and `{a,b}`.
#[must_use]
pub fn matches(pattern: &str, text: &str, star: Star) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    here(&pattern, &text, star)
}

fn here(pattern: &[char], text: &[char], star: Star) -> bool {
    let Some(first) = pattern.first() else { return text.is_empty() };
    let crosses = |c: char| c != '/' || star == Star::Anything;
    match first {
        '*' => {
            let double = pattern.get(1) == Some(&'*');
            let rest = &pattern[if double { 2 } else { 1 }..];
            let reach = text.iter().take_while(|c| double || crosses(**c)).count();
            (0..=reach).any(|taken| here(rest, &text[taken..], star))
        }
        '?' => text.first().is_some_and(|c| crosses(*c)) && here(&pattern[1..], &text[1..], star),
        '[' => match pattern.iter().position(|c| *c == ']') {
            Some(end) => {
                text.first().is_some_and(|c| in_class(&pattern[1..end], *c))
                    && here(&pattern[end + 1..], &text[1..], star)
            }
            None => false,
        },
        '{' => match pattern.iter().position(|c| *c == '}') {
            Some(end) => pattern[1..end].split(|c| *c == ',').any(|choice| {
                let whole: Vec<char> = choice.iter().chain(&pattern[end + 1..]).copied().collect();
                here(&whole, text, star)
            }),
            None => false,
        },
        literal => text.first() == Some(literal) && here(&pattern[1..], &text[1..], star),
    }
}

fn in_class(class: &[char], c: char) -> bool {
    let (negated, class) = match class.first() {
        Some('!' | '^') => (true, &class[1..]),
        _ => (false, class),
    };
    let mut found = false;
    let mut at = 0;
    while at < class.len() {
        if class.get(at + 1) == Some(&'-') && at + 2 < class.len() {
            found |= (class[at]..=class[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= class[at] == c;
            at += 1;
        }
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::{Star, matches};

    #[test]
    fn stars_and_slashes() {
        let anything = |pattern, text| matches(pattern, text, Star::Anything);
        assert!(anything("*.crossplane.io/*", "iam.aws.crossplane.io/Role"));
        assert!(anything("*", "acme.org/Thing"));
        assert!(anything("acme.org/Th?ng", "acme.org/Thing"));
        assert!(anything("{acme,other}.org/[A-T]hing", "other.org/Thing"));
        assert!(!anything("acme.org/*", "acme.com/Thing"));
        let within = |pattern, text| matches(pattern, text, Star::WithinOne);
        assert!(within("*.upbound.io/*", "s3.aws.upbound.io/Bucket"));
        assert!(!within("*", "acme.org/Thing"));
    }
}
