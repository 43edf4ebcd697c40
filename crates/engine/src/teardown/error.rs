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
                "the deployed graph has changed while this run waited for the platform",
                "another run has ended meanwhile, so the plan is no longer right",
            )
            .hint("run it again"),
            TeardownError::Generated { app, set } => Explanation::new(
                Exit::Configuration,
                format!("the app `{app}` cannot be removed by itself"),
                format!("the ApplicationSet `{set}` has created it, and would create it anew"),
            )
            .hint("take it out of what the ApplicationSet lists, or tear down the whole platform"),
            TeardownError::SharedGenerator { generator, is_set, others } => {
                shared_generator(generator, *is_set, others)
            }
            TeardownError::GeneratorElsewhere { generator, project } => Explanation::new(
                Exit::Configuration,
                format!("the Application `{generator}` cannot be removed"),
                format!(
                    "it creates apps of the platform, and is in the project `{project}`, which the \
                     platform file does not name"
                ),
            )
            .hint(
                "add the project to `spec.argocd.projects` and run `tiphys configure`, or take the \
                 apps out of what it creates",
            ),
            TeardownError::NamespaceHolds { app, namespace, held } => {
                namespace_holds(app, namespace, held)
            }
            TeardownError::Forced { wanted, groups } => {
                let what = format!("`--force-finalizer {wanted}` cannot be followed");
                let say = |why: String| Explanation::new(Exit::Configuration, what, why);
                match &groups[..] {
                    [] => say("the cluster has no such kind".to_owned()),
                    groups => say(format!("several groups have that kind: {}", groups.join(", ")))
                        .hint("remove the finalizer with `kubectl edit`"),
                }
            }
            TeardownError::NothingNamed { named, candidates } => Explanation::new(
                Exit::Usage,
                format!("`--including-others {named}` names nothing that could be taken along"),
                "no object of somebody else's is of that kind or in that namespace, among what \
                 came with the platform",
            )
            .hint(match &candidates[..] {
                [] => "leave it out: there is nothing of others to take along".to_owned(),
                candidates => format!("what could be named: {}", candidates.join(", ")),
            }),
            TeardownError::GeneratorRefused { generator, source } => Explanation::new(
                exit_of(source),
                format!("the generator `{generator}` cannot be removed"),
                source.to_string(),
            ),
            TeardownError::GeneratorStays { called, after } => Explanation::new(
                Exit::Failed,
                format!("{called} cannot be removed"),
                format!("it was not gone after {} s", after.as_secs()),
            )
            .hint("see which of its finalizers is left, and run the same command again"),
            TeardownError::Stuck { called, left, after } => {
                let left = left.iter().map(|(name, inside)| format!("`{name}`: {inside}"));
                let left = left.collect::<Vec<_>>().join("; ");
                Explanation::new(
                    Exit::Failed,
                    format!("{called}s that came with the platform did not go"),
                    format!("after {}: {left}", duration::format(*after)),
                )
                .hint(
                    "see to what is left in them, then run the same command again: it goes on here",
                )
            }
            TeardownError::LeftoverStays { object, after } => Explanation::new(
                Exit::Failed,
                format!("the leftover {object} does not go"),
                format!("it is still there after {} s", after.as_secs()),
            )
            .hint("see which of its finalizers is left, and run the same command again"),
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
        format!("the {kind} `{generator}` cannot be removed"),
        format!("it has made Applications of others, too: {}", others.join(", ")),
    )
    .hint(format!(
        "give the others a generator of their own; then remove this one with `{remove}`, and run \
         this again"
    ))
}

fn namespace_holds(app: &str, namespace: &str, held: &[Kept]) -> Explanation {
    let mut named: Vec<String> = held.iter().take(3).map(Kept::to_string).collect();
    if held.len() > named.len() {
        named.push(format!("and {} more", held.len() - named.len()));
    }
    Explanation::new(
        Exit::Failed,
        format!("the namespace `{namespace}` holds what must not go"),
        format!(
            "`{app}` applies the namespace itself, so Argo CD would delete it with all \
             that is in it: {}",
            named.join("; ")
        ),
    )
    .hint(
        "give the Namespace in Git the annotation \
         `argocd.argoproj.io/sync-options: Delete=false` and deploy it, or move what it \
         holds; then run this again",
    )
}
