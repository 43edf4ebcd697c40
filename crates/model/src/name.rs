//! Names that are parsed once and valid ever after.
//!
//! An app's name is the name of its Argo CD Application, and the platform's name becomes part
//! of the Lease and the ConfigMap in the cluster, so all of them follow the rule that
//! Kubernetes has for object names (DNS-1123 subdomain; DNS-1123 label where no dots make sense).

use std::fmt;
use std::sync::Arc;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name has {length} characters, but at most {limit} are allowed here")]
    TooLong { length: usize, limit: usize },
    #[error("{found:?} is not allowed in a name: use lower-case ASCII letters, digits, {allowed}")]
    Character { found: char, allowed: &'static str },
    #[error("a name must start and end with a letter or a digit, not with {found:?}")]
    Edge { found: char },
    #[error("a dot must be between letters or digits, not next to {beside:?}")]
    Dot { beside: char },
}

/// What the names of one kind may look like.
struct Rule {
    limit: usize,
    dots: bool,
}

const SUBDOMAIN: Rule = Rule { limit: 253, dots: true };
const LABEL: Rule = Rule { limit: 63, dots: false };
/// Leaves room for the prefix of `tiphys-PLATFORM` in names that must be labels.
const PLATFORM: Rule = Rule { limit: 56, dots: false };
/// Leaves room for that of the platform in the name of a CronWorkflow.
const TRIGGER: Rule = Rule { limit: 20, dots: false };

impl Rule {
    fn check(&self, text: &str) -> Result<(), NameError> {
        let separator = |c: char| c == '-' || (self.dots && c == '.');
        let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Err(NameError::Empty);
        };
        if let Some(found) = text.chars().find(|&c| !alphanumeric(c) && !separator(c)) {
            let allowed = if self.dots { "'-' and '.'" } else { "and '-'" };
            return Err(NameError::Character { found, allowed });
        }
        if text.len() > self.limit {
            return Err(NameError::TooLong { length: text.len(), limit: self.limit });
        }
        if let Some(found) = [first, last].into_iter().find(|&c| !alphanumeric(c)) {
            return Err(NameError::Edge { found });
        }
        // `a..b` and `a.-b`: each part of a subdomain is a label of its own.
        let beside_dot = |part: &str| {
            if part.is_empty() {
                return Some('.');
            }
            let dash = part.starts_with('-') || part.ends_with('-');
            dash.then_some('-')
        };
        match text.split('.').find_map(beside_dot) {
            Some(beside) => Err(NameError::Dot { beside }),
            None => Ok(()),
        }
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $rule:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $rule.check(text)?;
                Ok(Self(text.into()))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

names! {
    /// The name of an app, which is the name of its Argo CD Application.
    AppName: SUBDOMAIN;
    /// The name of a stack, a named group of apps.
    StackName: LABEL;
    /// The name of a concurrency group.
    GroupName: LABEL;
    /// The name of a namespace of Kubernetes.
    NamespaceName: LABEL;
    /// The name of a platform; `tiphys-NAME` is its Lease and its ConfigMap.
    PlatformName: PLATFORM;
    /// The name of a Secret.
    SecretName: SUBDOMAIN;
    /// The name of a trigger.
    TriggerName: TRIGGER;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_kubernetes_rule() {
        for good in ["a", "ceph-cluster", "1password", "a.b-c.d"] {
            assert_eq!(AppName::parse(good).unwrap().as_str(), good);
        }
        let cases = [
            ("", NameError::Empty),
            ("Ceph", NameError::Character { found: 'C', allowed: "'-' and '.'" }),
            ("a_b", NameError::Character { found: '_', allowed: "'-' and '.'" }),
            ("-a", NameError::Edge { found: '-' }),
            ("a-", NameError::Edge { found: '-' }),
            (".a", NameError::Edge { found: '.' }),
            ("a.", NameError::Edge { found: '.' }),
            ("a..b", NameError::Dot { beside: '.' }),
            ("a.-b", NameError::Dot { beside: '-' }),
            ("a-.b", NameError::Dot { beside: '-' }),
        ];
        for (bad, why) in cases {
            assert_eq!(AppName::parse(bad), Err(why), "{bad:?}");
        }
        assert_eq!(
            AppName::parse(&"a".repeat(254)),
            Err(NameError::TooLong { length: 254, limit: 253 })
        );
        assert_eq!(AppName::parse(&"a".repeat(253)).unwrap().as_str().len(), 253);
    }

    #[test]
    fn what_is_no_name_is_not_read_as_one() {
        let good = AppName::parse("ceph-cluster").unwrap();
        assert_eq!(serde_json::from_str::<AppName>(r#""ceph-cluster""#).unwrap(), good);
        let bad = serde_json::from_str::<AppName>(r#""Ceph""#).unwrap_err();
        assert!(bad.to_string().starts_with("'C' is not allowed in a name"), "{bad}");
    }

    #[test]
    fn labels_have_no_dots() {
        assert_eq!(
            StackName::parse("a.b"),
            Err(NameError::Character { found: '.', allowed: "and '-'" })
        );
        assert!(PlatformName::parse(&"p".repeat(56)).is_ok());
        assert_eq!(
            PlatformName::parse(&"p".repeat(57)),
            Err(NameError::TooLong { length: 57, limit: 56 })
        );
    }
}
