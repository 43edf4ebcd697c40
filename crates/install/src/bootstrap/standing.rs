//! What a platform stands on, compared with what its file pins.

use kube::Client;
use tiphys_cluster::RequestError;
use tiphys_model::bootstrap::{Bootstrap, Primitive, PrimitiveName};

use super::found::{Found, found};

/// What is not as pinned. What others have installed is theirs to look after.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Not there, or not as a whole.
    pub missing: Vec<PrimitiveName>,
    pub changed: Vec<ChangedPin>,
}

/// A primitive of ours in another version than the file pins.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedPin {
    pub primitive: PrimitiveName,
    pub installed: String,
    pub pinned: String,
}

/// Looks at all of them.
pub async fn standing(client: &Client, bootstrap: &Bootstrap) -> Result<Standing, RequestError> {
    let mut standing = Standing::default();
    for primitive in &bootstrap.primitives {
        standing.take(primitive, found(client, primitive).await?);
    }
    Ok(standing)
}

impl Standing {
    fn take(&mut self, primitive: &Primitive, found: Found) {
        match found {
            Found::Absent | Found::Ours { version: None } => self.missing.push(primitive.name),
            Found::Ours { version: Some(installed) } if installed != primitive.version => {
                let (primitive, pinned) = (primitive.name, primitive.version.clone());
                self.changed.push(ChangedPin { primitive, installed, pinned });
            }
            Found::Ours { .. } | Found::Foreign { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tiphys_model::bootstrap::{Checksum, Manifests};

    use super::*;

    #[test]
    fn what_is_missing_or_in_another_version_is_named() {
        let primitive = Primitive {
            name: PrimitiveName::Workflows,
            version: "v3.7.14".to_owned(),
            namespace: "argo".to_owned(),
            manifests: Manifests::Path("workflows.yaml".to_owned()),
            checksum: Checksum::parse(&"0".repeat(64)).unwrap(),
            patches: None,
        };
        let standing = |found: Found| {
            let mut standing = Standing::default();
            standing.take(&primitive, found);
            let Standing { missing, changed } = standing;
            (missing.len(), changed.into_iter().map(|pin| pin.installed).collect::<Vec<_>>())
        };
        let ours = |version: Option<&str>| Found::Ours { version: version.map(str::to_owned) };
        assert_eq!(standing(Found::Absent), (1, vec![]));
        assert_eq!(standing(ours(None)), (1, vec![]), "an installation has been interrupted");
        assert_eq!(standing(ours(Some("v3.7.14"))), (0, vec![]));
        assert_eq!(standing(ours(Some("v3.7.13"))), (0, vec!["v3.7.13".to_owned()]));
        assert_eq!(standing(Found::Foreign { seen: vec![] }), (0, vec![]));
    }
}
