//! Why a teardown could not begin, or not come to its end.

use std::time::Duration;

use tiphys_argocd::credentials::CredentialsError;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_cluster::{ObjectName, RequestError};
use tiphys_install::{bootstrap, configure};
use tiphys_model::{Exit, Explain, Explanation, duration};
use tiphys_state::claim::ClaimError;
use tiphys_state::graph::GraphError;
use tiphys_state::hold::HoldError;
use tiphys_state::lease::LeaseError;

use super::{ForcedFinalizer, Kept};
use crate::engine::RunError;
use crate::signals::SignalError;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum TeardownError {
    /// Another run came in between.
    Outdated,
    /// An ApplicationSet would create the app anew.
    Generated {
        app: String,
        set: String,
    },
    /// It makes Applications of the platform, and of others.
    SharedGenerator {
        generator: String,
        is_set: bool,
        others: Vec<String>,
    },
    /// It makes Applications of the platform, and is in a project that the platform does not use.
    GeneratorElsewhere {
        generator: String,
        project: String,
    },
    /// Argo CD would delete the namespace with its app, and all that is in it.
    NamespaceHolds {
        app: String,
        namespace: String,
        held: Vec<Kept>,
    },
    /// `--force-finalizer` does not say which object is meant.
    Forced {
        wanted: ForcedFinalizer,
        /// That have this kind.
        groups: Vec<String>,
    },
    /// `--including-others` names nothing that would stay otherwise.
    NothingNamed {
        named: String,
        candidates: Vec<String>,
    },
    GeneratorRefused {
        generator: String,
        source: CallError,
    },
    GeneratorStays {
        /// "the generator `a`"
        called: String,
        after: Duration,
    },
    /// Namespaces or CRDs.
    Stuck {
        /// "the namespace"
        called: &'static str,
        /// By name, with what is inside in Kubernetes' own words.
        left: Vec<(String, String)>,
        after: Duration,
    },
    LeftoverStays {
        object: ObjectName,
        after: Duration,
    },
    Claim(#[from] ClaimError),
    Signals(#[from] SignalError),
    Credentials(#[from] CredentialsError),
    Lease(#[from] LeaseError),
    Hold(#[from] HoldError),
    Graph(#[from] GraphError),
    Run(#[from] RunError),
    Configuration(#[from] configure::RemoveError),
    Primitives(#[from] bootstrap::RemoveError),
    Request(#[from] RequestError),
}

impl Explain for TeardownError {
    fn explain(&self) -> Explanation {
        match self {
            TeardownError::Outdated => Explanation::new(
                Exit::Failed,
                "the deployed graph changed while this run waited for the platform",
                "another run ended in the meantime, so the plan is out of date",
            )
            .hint("run the same command again"),
            TeardownError::Generated { app, set } => Explanation::new(
                Exit::Configuration,
                format!("cannot remove the app `{app}` alone"),
                format!("the ApplicationSet `{set}` created it and would create it again"),
            )
            .hint("remove it from the ApplicationSet, or tear down the whole platform"),
            TeardownError::SharedGenerator { generator, is_set, others } => {
                shared_generator(generator, *is_set, others)
            }
            TeardownError::GeneratorElsewhere { generator, project } => Explanation::new(
                Exit::Configuration,
                format!("cannot remove the Application `{generator}`"),
                format!(
                    "it creates apps of the platform, but its project `{project}` is not in the \
                     platform file"
                ),
            )
            .hint(
                "add the project to `spec.argocd.projects` and run `tiphys configure`, or remove \
                 the apps from its source",
            ),
            TeardownError::NamespaceHolds { app, namespace, held } => {
                namespace_holds(app, namespace, held)
            }
            TeardownError::Forced { wanted, groups } => {
                let what = format!("cannot apply `--force-finalizer {wanted}`");
                let say = |why: String| Explanation::new(Exit::Configuration, what, why);
                match &groups[..] {
                    [] => say("the cluster does not have this kind".to_owned()),
                    groups => {
                        say(format!("several API groups have this kind: {}", groups.join(", ")))
                            .hint("remove the finalizer with `kubectl edit`")
                    }
                }
            }
            TeardownError::NothingNamed { named, candidates } => Explanation::new(
                Exit::Usage,
                format!("`--including-others {named}` matches nothing"),
                "nothing of that kind or in that namespace both came with the platform and belongs \
                 to someone else",
            )
            .hint(match &candidates[..] {
                [] => "remove the flag: there is nothing it could match".to_owned(),
                candidates => format!("use a kind or namespace such as: {}", candidates.join(", ")),
            }),
            TeardownError::GeneratorRefused { generator, source } => Explanation::new(
                exit_of(source),
                format!("cannot remove the generator `{generator}`"),
                source.to_string(),
            ),
            TeardownError::GeneratorStays { called, after } => Explanation::new(
                Exit::Failed,
                format!("failed to remove {called}"),
                format!("it still exists after {} s", after.as_secs()),
            )
            .hint("check which finalizers are left on it, then run the same command again"),
            TeardownError::Stuck { called, left, after } => {
                let left = left.iter().map(|(name, inside)| format!("`{name}`: {inside}"));
                let left = left.collect::<Vec<_>>().join("; ");
                Explanation::new(
                    Exit::Failed,
                    format!("failed to remove {called}s that came with the platform"),
                    format!("after {}: {left}", duration::format(*after)),
                )
                .hint(
                    "remove what is left in them, then run the same command again: it resumes here",
                )
            }
            TeardownError::LeftoverStays { object, after } => Explanation::new(
                Exit::Failed,
                format!("failed to remove the leftover {object}"),
                format!("it still exists after {} s", after.as_secs()),
            )
            .hint("check which finalizers are left on it, then run the same command again"),
            TeardownError::Claim(error) => error.explain(),
            TeardownError::Signals(error) => error.explain(),
            TeardownError::Credentials(error) => error.explain(),
            TeardownError::Lease(error) => error.explain(),
            TeardownError::Hold(error) => error.explain(),
            TeardownError::Graph(error) => error.explain(),
            TeardownError::Run(error) => error.explain(),
            TeardownError::Configuration(error) => error.explain(),
            TeardownError::Primitives(error) => error.explain(),
            TeardownError::Request(error) => error.explain(),
        }
    }
}

fn exit_of(error: &CallError) -> Exit {
    match error {
        CallError::Refused { refusal: Refusal::Unauthenticated | Refusal::Forbidden, .. } => {
            Exit::Credentials
        }
        CallError::Refused { .. } => Exit::Failed,
        CallError::Unanswered { .. } => Exit::Unreachable,
    }
}

fn shared_generator(generator: &str, is_set: bool, others: &[String]) -> Explanation {
    let (kind, remove) = if is_set {
        let remove = format!("kubectl delete applicationset {generator} --cascade=orphan");
        ("ApplicationSet", remove)
    } else {
        ("Application", format!("argocd app delete {generator} --cascade=false"))
    };
    Explanation::new(
        Exit::Configuration,
        format!("cannot remove the {kind} `{generator}`"),
        format!(
            "it also created Applications that are not part of this platform: {}",
            others.join(", ")
        ),
    )
    .hint(format!(
        "move these Applications to a generator of their own, remove this one with `{remove}`, \
         then run the same command again"
    ))
}

fn namespace_holds(app: &str, namespace: &str, held: &[Kept]) -> Explanation {
    let mut named: Vec<String> = held.iter().take(3).map(Kept::to_string).collect();
    if held.len() > named.len() {
        named.push(format!("and {} more", held.len() - named.len()));
    }
    Explanation::new(
        Exit::Failed,
        format!("the namespace `{namespace}` contains objects that must not be deleted"),
        format!(
            "`{app}` applies the Namespace itself, so Argo CD would delete it with everything in \
             it: {}",
            named.join("; ")
        ),
    )
    .hint(
        "add the annotation `argocd.argoproj.io/sync-options: Delete=false` to the Namespace in \
         Git and deploy it, or move these objects; then run the same command again",
    )
}
