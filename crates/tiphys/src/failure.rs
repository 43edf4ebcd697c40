//! The error boundary: every failure becomes one text (what, where, why, what next) and one
//! exit code, here and nowhere else.

use std::io;
use std::path::PathBuf;

use tiphys_model::scope::ScopeError;
use tiphys_model::{AppName, Exit, Explain, Explanation, Platform};
use tiphys_report::{Notice, render_diagnostics, render_notice};
use tiphys_spec::{Diagnostics, Sources, nearest};

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
    /// `--plan` asks for another plan.
    Plan { wanted: String, found: String },
    /// A teardown wants to ask, and there is no terminal.
    NobodyToAsk,
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
        let apps = platform.apps.iter().map(|app| format!("app:{}", app.name));
        let mut known: Vec<String> =
            platform.apps.iter().map(|app| format!("stack:{}", app.stack)).chain(apps).collect();
        known.push("platform".to_owned());
        known.sort();
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

    pub(crate) fn render(&self) -> String {
        match self {
            Failure::Input(error) => render_notice(&error.notice()),
            Failure::Platform(sources, problems) => render_diagnostics(sources, problems.clone()),
            Failure::Environment { wanted, found } => render_notice(&Notice {
                what: format!("wrong environment: TIPHYS_ENVIRONMENT is `{wanted}`"),
                place: None,
                why: Some(match found {
                    Some(name) => format!("the platform is for the environment `{name}`"),
                    None => "the platform file does not set `spec.environment.name`".to_owned(),
                }),
                next: Some(
                    "use the platform file of that environment, or unset the variable".to_owned(),
                ),
            }),
            Failure::Scope { given, why, nearest } => render_notice(&Notice {
                what: format!("unknown scope `{given}`"),
                place: None,
                why: why.as_ref().map(ToString::to_string),
                next: Some(match nearest {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "`tiphys plan` lists the stacks and apps".to_owned(),
                }),
            }),
            Failure::App { given, why, nearest } => render_notice(&Notice {
                what: format!("unknown app `{given}`"),
                place: None,
                why: why.map(str::to_owned),
                next: Some(match nearest {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "`tiphys plan` lists the apps".to_owned(),
                }),
            }),
            Failure::Explained(error) => {
                let Explanation { what, why, next, .. } = error.explain();
                render_notice(&Notice { what, place: None, why: Some(why), next })
            }
            Failure::Runtime(error) => render_notice(&Notice {
                what: "cannot start the async runtime".to_owned(),
                place: None,
                why: Some(error.to_string()),
                next: None,
            }),
            Failure::NoBootstrap => render_notice(&Notice {
                what: "`spec.bootstrap` is missing".to_owned(),
                place: None,
                why: Some("the platform file does not pin a version of Argo CD to install".to_owned()),
                next: Some(
                    "add `spec.bootstrap`; if Argo CD is already installed, run `tiphys configure` instead"
                        .to_owned(),
                ),
            }),
            Failure::Plan { wanted, found } => render_notice(&Notice {
                what: format!("the plan differs from --plan {wanted}"),
                place: None,
                why: Some(format!("its digest is {found}; --plan takes the digest or at least its first 12 digits")),
                next: Some("review the plan with `tiphys plan`, then pass its digest".to_owned()),
            }),
            Failure::NobodyToAsk => render_notice(&Notice {
                what: "cannot ask for confirmation".to_owned(),
                place: None,
                why: Some("stdin is not a terminal".to_owned()),
                next: Some(
                    "review what would be removed with `--dry-run`, then confirm with `--yes`"
                        .to_owned(),
                ),
            }),
            Failure::Health(notice) => render_notice(notice),
            Failure::Bug(what) => render_notice(&Notice {
                what: "internal error: the run is in an inconsistent state and was stopped".to_owned(),
                place: None,
                why: Some(what.clone()),
                next: Some(
                    "this is a bug in Tiphys: please report it with the command you ran".to_owned(),
                ),
            }),
            Failure::Events { path, error } => render_notice(&Notice {
                what: "cannot write the events file".to_owned(),
                place: Some(path.display().to_string()),
                why: Some(error.to_string()),
                next: Some("choose a writable path with `--events FILE`".to_owned()),
            }),
            Failure::Unwritable { path, error } => render_notice(&Notice {
                what: "cannot write the file".to_owned(),
                place: Some(path.display().to_string()),
                why: Some(error.to_string()),
                next: Some("choose a writable path".to_owned()),
            }),
            Failure::Usage { what, next } => render_notice(&Notice {
                what: what.clone(),
                place: None,
                why: None,
                next: Some(next.clone()),
            }),
            Failure::Output(error) => render_notice(&Notice {
                what: "cannot write the output".to_owned(),
                place: None,
                why: Some(error.to_string()),
                next: None,
            }),
        }
    }
}
