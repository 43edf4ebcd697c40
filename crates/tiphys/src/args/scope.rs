//! `--scope`.

use std::collections::BTreeSet;

use clap::Args as ClapArgs;
use clap_complete::ArgValueCompleter;
use tiphys_model::scope::ScopeError;
use tiphys_model::{Platform, Scope};

use crate::completer;
use crate::failure::Failure;

/// The scopes that were given. They are read when the platform is known: an error names the scope
/// that was probably meant.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ScopeArgs {
    /// Apps to act on: `platform`, `stack:NAME` or `app:NAME`; `*` is a wildcard; repeatable
    /// [default: platform]
    #[arg(long = "scope", value_name = "SCOPE", add = ArgValueCompleter::new(completer::scopes))]
    given: Vec<String>,
}

/// All scopes of a platform that are one word.
pub(crate) fn known(platform: &Platform) -> BTreeSet<String> {
    let stacks = platform.apps.iter().map(|app| format!("stack:{}", app.stack));
    let apps = platform.apps.iter().map(|app| format!("app:{}", app.name));
    stacks.chain(apps).chain(["platform".to_owned()]).collect()
}

impl ScopeArgs {
    pub(crate) fn of(&self, platform: &Platform) -> Result<Scope, Failure> {
        self.parsed(|given, why| Failure::unknown_scope(given, Some(why), platform))
    }

    /// The scope where it is not known which apps exist.
    pub(crate) fn unresolved(&self) -> Result<Scope, Failure> {
        self.parsed(|given, why| Failure::Scope {
            given: given.to_owned(),
            why: Some(why),
            nearest: None,
        })
    }

    fn parsed(&self, failure: impl Fn(&str, ScopeError) -> Failure) -> Result<Scope, Failure> {
        let scope = |given: &String| given.parse::<Scope>().map_err(|why| failure(given, why));
        self.given.iter().map(scope).collect()
    }

    /// As arguments of a command to run again.
    pub(crate) fn repeat(&self) -> impl Iterator<Item = String> {
        self.given.iter().map(|scope| {
            // A shell would replace it by the names of files.
            let quote = if scope.contains('*') { "'" } else { "" };
            format!(" --scope {quote}{scope}{quote}")
        })
    }
}
