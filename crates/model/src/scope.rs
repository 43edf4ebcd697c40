//! Scopes: what an action is about.

use std::fmt;
use std::str::FromStr;

use crate::name::{AppName, NameError, StackName};

/// What an action is about: `platform`, `stack:NAME` or `app:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    Platform,
    Stack(StackName),
    App(AppName),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("a scope is `platform`, `stack:NAME` or `app:NAME`")]
    Form,
    #[error("{0}")]
    Name(NameError),
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "platform" => Ok(Scope::Platform),
            Some(("stack", name)) => {
                StackName::parse(name).map(Scope::Stack).map_err(ScopeError::Name)
            }
            Some(("app", name)) => AppName::parse(name).map(Scope::App).map_err(ScopeError::Name),
            _ => Err(ScopeError::Form),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Platform => f.write_str("platform"),
            Scope::Stack(name) => write!(f, "stack:{name}"),
            Scope::App(name) => write!(f, "app:{name}"),
        }
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
        for text in ["platform", "stack:storage", "app:ceph-cluster"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in ["", "Platform", "stack", "stack:", "node:x", "app:A", "app:a:b"] {
            assert!(text.parse::<Scope>().is_err(), "{text:?}");
        }
    }
}
