//! What of others may go after all, as somebody says: all of a kind, or all in a namespace.

use std::fmt;
use std::str::FromStr;

use super::Object;

/// `KIND`, `KIND.GROUP`, `PLURAL.GROUP` or a namespace. Kinds begin with a capital, and namespaces
/// have no dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Others {
    Namespace(String),
    /// Kind or plural; of any group, if none is given.
    Kind {
        name: String,
        group: Option<String>,
    },
}

impl Others {
    /// Whether this object is meant. A CRD is meant by the name that it has itself.
    #[must_use]
    pub fn include(&self, object: &Object) -> bool {
        match self {
            Others::Namespace(namespace) => {
                let itself = object.group.is_empty() && object.kind == "Namespace";
                *namespace == if itself { &*object.name } else { &*object.namespace }
            }
            Others::Kind { name, group: Some(group) } => {
                let of_kind =
                    *group == object.group && [&object.kind, &object.plural].contains(&name);
                of_kind
                    || object.kind == "CustomResourceDefinition"
                        && object.name == format!("{name}.{group}")
            }
            Others::Kind { name, group: None } => *name == object.kind,
        }
    }
}

impl FromStr for Others {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, group) = match text.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (text, None),
        };
        if name.is_empty()
            || group == Some("")
            || text.contains(|c: char| c == '/' || c.is_whitespace())
        {
            return Err(
                "must be a kind, such as `Certificate` or `certificates.cert-manager.io`, \
                        or a namespace"
                    .to_owned(),
            );
        }
        let is_kind = group.is_some() || name.starts_with(|first: char| first.is_ascii_uppercase());
        Ok(if is_kind {
            Others::Kind { name: name.to_owned(), group: group.map(str::to_owned) }
        } else {
            Others::Namespace(name.to_owned())
        })
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Others::Namespace(name) | Others::Kind { name, group: None } => f.write_str(name),
            Others::Kind { name, group: Some(group) } => write!(f, "{name}.{group}"),
        }
    }
}
