//! Scopes as they are given.

use tiphys_model::scope::ScopeError;
use tiphys_model::{Platform, Scope};

use crate::failure::Failure;

/// `--scope`, read. One that cannot be read is told when the platform is known, with the scope that
/// was probably meant.
#[derive(Debug, Clone)]
pub(crate) struct GivenScope(Result<Scope, Unreadable>);

#[derive(Debug, Clone)]
struct Unreadable {
    given: String,
    why: ScopeError,
}

impl From<String> for GivenScope {
    fn from(given: String) -> Self {
        GivenScope(given.parse().map_err(|why| Unreadable { given, why }))
    }
}

impl GivenScope {
    /// The default.
    pub(crate) const PLATFORM: GivenScope = GivenScope(Ok(Scope::Platform));

    pub(crate) fn of(&self, platform: &Platform) -> Result<&Scope, Failure> {
        self.0.as_ref().map_err(|Unreadable { given, why }| {
            Failure::unknown_scope(given, Some(why.clone()), platform)
        })
    }

    /// As it stands behind a command that is to be given again.
    pub(crate) fn repeat(&self) -> Option<String> {
        let given = match &self.0 {
            Ok(Scope::Platform) => return None,
            Ok(scope) => scope.to_string(),
            Err(unreadable) => unreadable.given.clone(),
        };
        Some(format!(" --scope {given}"))
    }
}
