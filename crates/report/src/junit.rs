//! What Phase 0 has found, as machines that run tests read it.

use std::borrow::Cow;
use std::fmt;

use tiphys_assess::preflight::{Check, Outcome, Report, Section};

/// One suite for each section. JUnit has no warnings: those have passed, and say so.
pub struct JunitReport<'a>(pub &'a Report);

impl fmt::Display for JunitReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = &self.0.checks;
        writeln!(f, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        let name = escaped(self.0.platform.as_str());
        writeln!(f, r#"<testsuites name="tiphys preflight {name}"{}>"#, counts(checks.iter()))?;
        for section in Section::ALL {
            let own = || checks.iter().filter(move |check| check.section == section);
            if own().next().is_none() {
                continue;
            }
            writeln!(f, r#"  <testsuite name="{}"{}>"#, section.as_str(), counts(own()))?;
            own().try_for_each(|check| case(f, check))?;
            writeln!(f, "  </testsuite>")?;
        }
        writeln!(f, "</testsuites>")
    }
}

fn counts<'a>(checks: impl Iterator<Item = &'a Check>) -> String {
    let (mut all, mut failed, mut skipped) = (0, 0, 0);
    for check in checks {
        all += 1;
        match check.outcome {
            Outcome::Fail(_) => failed += 1,
            Outcome::Skipped => skipped += 1,
            Outcome::Pass | Outcome::Warning => {}
        }
    }
    format!(r#" tests="{all}" failures="{failed}" errors="0" skipped="{skipped}""#)
}

fn case(f: &mut fmt::Formatter<'_>, check: &Check) -> fmt::Result {
    let (name, section) = (escaped(&check.name), check.section.as_str());
    let (required, found) = (escaped(&check.required), escaped(&check.found));
    let next = check.next.as_deref().map(escaped);
    let next = next.map(|next| format!("\nnext: {next}")).unwrap_or_default();
    write!(f, r#"    <testcase name="{name}" classname="preflight.{section}""#)?;
    match check.outcome {
        Outcome::Pass => writeln!(f, "/>"),
        Outcome::Warning => writeln!(
            f,
            "><system-out>warning: required: {required}\nfound: {found}{next}</system-out></testcase>"
        ),
        Outcome::Skipped => writeln!(f, r#"><skipped message="{found}"/></testcase>"#),
        Outcome::Fail(_) => writeln!(
            f,
            "><failure message=\"{found}\">required: {required}\nfound: {found}{next}</failure></testcase>"
        ),
    }
}

/// For text and attributes of XML 1.0, which has no way at all to write most control characters.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'') && allowed(c);
    if text.chars().all(plain) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c if allowed(c) => escaped.push(c),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped.into()
}

fn allowed(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\t' | '\n');
    !control && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::tests::report;

    #[test]
    fn every_check_is_a_test_case() {
        insta::assert_snapshot!("preflight_junit", JunitReport(&report()).to_string());
    }

    #[test]
    fn nothing_breaks_out_of_the_document() {
        assert_eq!(escaped("a"), "a");
        assert_eq!(escaped("<a b='c'>&\""), "&lt;a b=&apos;c&apos;&gt;&amp;&quot;");
        assert_eq!(escaped("]]>\u{0}\u{1b}[0m\r"), "]]&gt;\u{fffd}\u{fffd}[0m\u{fffd}");
    }
}
