//! Scopes: what an action is about.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::name::{AppName, NameError, StackName};
use crate::platform::App;

/// What an action is about: `platform`, or parts of it. Its canonical text has the parts sorted and
/// joined with `,`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    Platform,
    /// At least one.
    Parts(BTreeSet<Selector>),
}

/// Apps by their names, or by those of their stacks.
// The order is that of the texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    App(Pattern),
    Stack(Pattern),
}

/// A name, in which `*` is any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("a scope must be `platform`, `stack:NAME` or `app:NAME`, where NAME may contain `*`")]
    Form,
    #[error("{0}")]
    Name(NameError),
}

impl Scope {
    #[must_use]
    pub fn app(name: &AppName) -> Self {
        Scope::from(Selector::App(Pattern(name.as_str().into())))
    }

    #[must_use]
    pub fn stack(name: &StackName) -> Self {
        Scope::from(Selector::Stack(Pattern(name.as_str().into())))
    }

    #[must_use]
    pub fn covers(&self, app: &App) -> bool {
        match self {
            Scope::Platform => true,
            Scope::Parts(parts) => parts.iter().any(|part| part.selects(app)),
        }
    }
}

impl Selector {
    #[must_use]
    pub fn selects(&self, app: &App) -> bool {
        match self {
            Selector::App(pattern) => pattern.matches(app.name.as_str()),
            Selector::Stack(pattern) => pattern.matches(app.stack.as_str()),
        }
    }
}

impl Pattern {
    /// A text is one if it would be a name with letters in place of each `*`.
    fn parse(
        text: &str,
        check: impl Fn(&str) -> Result<(), NameError>,
    ) -> Result<Self, ScopeError> {
        check(&text.replace('*', "x")).map_err(ScopeError::Name)?;
        Ok(Pattern(text.into()))
    }

    fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return *self.0 == *name };
        let Some(mut left) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            // The first place is as good as any: whatever comes before is covered by a `*`.
            let Some(at) = left.find(part) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(last)
    }
}

impl FromStr for Selector {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("stack", name)) => {
                Pattern::parse(name, |name| StackName::parse(name).map(drop)).map(Selector::Stack)
            }
            Some(("app", name)) => {
                Pattern::parse(name, |name| AppName::parse(name).map(drop)).map(Selector::App)
            }
            _ => Err(ScopeError::Form),
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |text: &str| match text {
            "platform" => Ok(Scope::Platform),
            text => text.parse().map(|selector: Selector| Scope::from(selector)),
        };
        text.split(',').map(part).collect()
    }
}

impl From<Selector> for Scope {
    fn from(selector: Selector) -> Self {
        Scope::Parts([selector].into())
    }
}

/// All of them together; none is the whole platform.
impl FromIterator<Scope> for Scope {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut all = BTreeSet::new();
        for scope in scopes {
            match scope {
                Scope::Platform => return Scope::Platform,
                Scope::Parts(parts) => all.extend(parts),
            }
        }
        if all.is_empty() { Scope::Platform } else { Scope::Parts(all) }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::App(Pattern(pattern)) => write!(f, "app:{pattern}"),
            Selector::Stack(Pattern(pattern)) => write!(f, "stack:{pattern}"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scope::Parts(parts) = self else { return f.write_str("platform") };
        for (index, part) in parts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{part}")?;
        }
        Ok(())
    }
}

impl serde::Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Scope {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for text in
            ["platform", "stack:storage", "app:ceph-cluster", "app:a,app:b-*,stack:*", "app:*.x"]
        {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in
            ["", "Platform", "stack", "stack:", "node:x", "app:A", "app:a:b", "app:a,", "app:-*"]
        {
            assert!(text.parse::<Scope>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_same_parts_in_any_order_are_the_same_scope() {
        let scope = |text: &str| text.parse::<Scope>().unwrap();
        assert_eq!(scope("stack:s,app:b,app:a,app:b").to_string(), "app:a,app:b,stack:s");
        assert_eq!(scope("app:a,platform"), Scope::Platform);
        let given = [scope("app:b"), scope("app:a")].into_iter().collect::<Scope>();
        assert_eq!(given, scope("app:a,app:b"));
        assert_eq!([].into_iter().collect::<Scope>(), Scope::Platform);
    }

    #[test]
    fn a_star_is_any_text() {
        let matches = |pattern: &str, name: &str| Pattern(pattern.into()).matches(name);
        for (pattern, name) in [
            ("vault", "vault"),
            ("vault-*", "vault-agent"),
            ("vault-*", "vault-"),
            ("*", "a"),
            ("*-config", "metallb-config"),
            ("a*b*c", "aXbXbc"),
            ("*a*", "banana"),
            ("a*a", "aa"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("vault", "vault-agent"),
            ("vault-*", "vault"),
            ("a*a", "a"),
            ("a*b*c", "acb"),
            ("*a", "ab"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
