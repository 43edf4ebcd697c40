//! The error boundary: every failure becomes one text (what, where, why, what next) and one
//! exit code, here and nowhere else.

use std::io;
use std::path::{Path, PathBuf};

use anstream::adapter::strip_str;
use tiphys_model::scope::ScopeError;
use tiphys_model::{AppName, Exit, Explain, Explanation, Platform};
use tiphys_report::{Notice, render_diagnostics, render_notice};
use tiphys_spec::{Diagnostics, Sources, nearest};

use crate::args::known_scopes;
use crate::input::InputError;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The platform could not be read.
    Input(InputError),
    /// The platform is wrong.
    Platform(Box<Sources>, Diagnostics),
    /// `TIPHYS_ENVIRONMENT` names another environment than the platform.
    Environment { wanted: String, found: Option<String> },
    /// The scope names nothing.
    Scope { given: String, why: Option<ScopeError>, nearest: Option<String> },
    /// An app that is not there, and why it is asked for.
    App { given: AppName, why: Option<&'static str>, nearest: Option<String> },
    /// The file of `--events` cannot be opened.
    Events { path: PathBuf, error: io::Error },
    /// A file that should be written cannot be.
    Unwritable { path: PathBuf, error: io::Error },
    /// The data could not be written.
    Output(io::Error),
    /// An operation failed, and can say why.
    Explained(Box<dyn Explain + Send + Sync>),
    /// Nothing can be waited for.
    Runtime(io::Error),
    /// Objects or health scripts cannot be read.
    Health(Notice),
    /// `spec.bootstrap` is absent, and there is nothing else to install.
    NoBootstrap,
    /// Primitives are missing, and a platform file in Git cannot name the manifests beside it.
    NoPrimitives,
    /// `--plan` asks for another plan.
    Plan { wanted: String, found: String },
    /// A teardown wants to ask, and there is no terminal.
    NobodyToAsk,
    /// A variable of the executor is missing or wrong.
    Variable { name: String, why: String, next: String },
    /// Flags that do not go together.
    Usage { what: String, next: String },
    /// The program contradicts itself.
    Bug(String),
}

impl<E: Explain + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Explained(Box::new(error))
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Input(_)
            | Failure::Platform(..)
            | Failure::Environment { .. }
            | Failure::Plan { .. }
            | Failure::Health(_)
            | Failure::NoBootstrap
            | Failure::NoPrimitives
            | Failure::Variable { .. }
            | Failure::Events { .. }
            | Failure::Unwritable { .. } => Exit::Configuration,
            Failure::Scope { .. } | Failure::App { .. } => Exit::NotFound,
            Failure::NobodyToAsk | Failure::Usage { .. } => Exit::Usage,
            Failure::Explained(error) => error.explain().exit,
            Failure::Output(_) | Failure::Runtime(_) | Failure::Bug(_) => Exit::Failed,
        }
    }

    /// A scope that is not in the platform, with the one that was probably meant.
    pub(crate) fn unknown_scope(given: &str, why: Option<ScopeError>, platform: &Platform) -> Self {
        let known = known_scopes(platform);
        // A bare name is a slip too: the prefix was forgotten.
        let bare = known.iter().find(|scope| scope.split_once(':').is_some_and(|s| s.1 == given));
        let near = || nearest(given, known.iter().map(String::as_str)).map(str::to_owned);
        let nearest = bare.cloned().or_else(near);
        Failure::Scope { given: given.to_owned(), why, nearest }
    }

    pub(crate) fn unknown_app(
        given: &AppName,
        why: Option<&'static str>,
        platform: &Platform,
    ) -> Self {
        let names = platform.apps.iter().map(|app| app.name.as_str());
        let nearest = nearest(given.as_str(), names).map(str::to_owned);
        Failure::App { given: given.clone(), why, nearest }
    }

    /// For `map_err` on files that should be written.
    pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Failure::Unwritable { path, error }
    }

    pub(crate) fn render(&self) -> String {
        match self {
            Failure::Platform(sources, problems) => render_diagnostics(sources, problems.clone()),
            other => render_notice(&other.notice()),
        }
    }

    /// What, where, why and what next.
    pub(crate) fn notice(&self) -> Notice {
        match self {
            // Each of its problems has a place of its own; together they have none.
            Failure::Platform(sources, problems) => {
                let problems =
                    strip_str(&render_diagnostics(sources, problems.clone())).to_string();
                notice("invalid platform file", Some(&problems), None)
            }
            Failure::Input(error) => error.notice(),
            Failure::Health(notice) => notice.clone(),
            Failure::Explained(error) => {
                let Explanation { what, why, next, .. } = error.explain();
                notice(&what, Some(&why), next.as_deref())
            }
            Failure::Environment { wanted, found } => {
                let what = format!("wrong environment: TIPHYS_ENVIRONMENT is `{wanted}`");
                let why = match found {
                    Some(name) => format!("the platform is for the environment `{name}`"),
                    None => "the platform does not set `spec.environment.name`".to_owned(),
                };
                let next = "use the platform file of that environment, or unset the variable";
                notice(&what, Some(&why), Some(next))
            }
            Failure::Scope { given, why, nearest } => {
                let next = did_you_mean(nearest.as_deref(), "the stacks and apps");
                let why = why.as_ref().map(ToString::to_string);
                notice(&format!("unknown scope `{given}`"), why.as_deref(), Some(&next))
            }
            Failure::App { given, why, nearest } => {
                let next = did_you_mean(nearest.as_deref(), "the apps");
                notice(&format!("unknown app `{given}`"), *why, Some(&next))
            }
            Failure::Events { path, error } => at(
                path,
                "cannot write the events file",
                error,
                "choose a writable path with `--events FILE`",
            ),
            Failure::Unwritable { path, error } => {
                at(path, "cannot write the file", error, "choose a writable path")
            }
            Failure::Output(error) => {
                notice("cannot write the output", Some(&error.to_string()), None)
            }
            Failure::Runtime(error) => {
                notice("cannot start the async runtime", Some(&error.to_string()), None)
            }
            Failure::NoBootstrap => notice(
                "`spec.bootstrap` is missing",
                Some("the platform file does not pin a version of Argo CD to install"),
                Some(
                    "add `spec.bootstrap`; if Argo CD is already installed, run `tiphys configure` \
                     instead",
                ),
            ),
            Failure::NoPrimitives => notice(
                "primitives are missing",
                Some("the cluster lacks something that `spec.bootstrap` pins"),
                Some("run `tiphys bootstrap` with the platform file first"),
            ),
            Failure::Plan { wanted, found } => {
                let why = format!(
                    "its digest is {found}; --plan takes the digest or at least its first 12 digits"
                );
                let next = "review the plan with `tiphys plan`, then pass its digest";
                notice(&format!("the plan differs from --plan {wanted}"), Some(&why), Some(next))
            }
            Failure::NobodyToAsk => notice(
                "cannot ask for confirmation",
                Some("stdin is not a terminal"),
                Some("review what would be removed with `--dry-run`, then confirm with `--yes`"),
            ),
            Failure::Variable { name, why, next } => {
                notice(&format!("invalid variable {name}"), Some(why), Some(next))
            }
            Failure::Usage { what, next } => notice(what, None, Some(next)),
            Failure::Bug(what) => notice(
                "internal error: the run is in an inconsistent state and was stopped",
                Some(what),
                Some("this is a bug in Tiphys: please report it with the command you ran"),
            ),
        }
    }
}

fn notice(what: &str, why: Option<&str>, next: Option<&str>) -> Notice {
    let (why, next) = (why.map(str::to_owned), next.map(str::to_owned));
    Notice { what: what.to_owned(), place: None, why, next }
}

/// What is wrong with a file.
fn at(path: &Path, what: &str, error: &io::Error, next: &str) -> Notice {
    let place = Some(path.display().to_string());
    Notice { place, ..notice(what, Some(&error.to_string()), Some(next)) }
}

fn did_you_mean(nearest: Option<&str>, listed: &str) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("`tiphys plan` lists {listed}"),
    }
}
