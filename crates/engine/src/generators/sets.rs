//! ApplicationSets as generators. Their own controller makes Applications from a template, in its own
//! time, and does not say which generation of the set it has seen. So it is asked: a set is settled
//! when its controller has answered, and every Application is as Argo CD renders it.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::settled::{self, Rendering};
use super::{GeneratorError, Generators, POLL, SETS_TIMEOUT};
use tiphys_argocd::application::{self, Application};
use tiphys_argocd::application_set::REFRESH;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_cluster::RequestError;
use tiphys_cluster::names::FIELD_MANAGER;
use tokio::time::Instant;

/// After this, a controller that failed is asked again: it would look for itself only minutes later.
/// One that is only slow is not, because whoever changes the set makes it begin anew.
const ASK_AGAIN: Duration = Duration::from_secs(20);
/// How long its Applications may take to appear after an answer, before it is asked again.
const ROUND: Duration = Duration::from_secs(5);
/// What takes longer than this, the run says that it waits for.
const SAY_AFTER: Duration = Duration::from_secs(3);

impl Generators<'_> {
    /// Waits until an ApplicationSet has made its Applications what they should be.
    pub(super) async fn settle(&self, name: &str) -> Result<Vec<String>, GeneratorError> {
        refuse_rolling_sync(name, &self.read_set(name).await?.data)?;
        let mut wait = Wait::new(self.note);
        loop {
            let set = self.await_answer(name, &mut wait).await?;
            let lack = match self.await_applications(name, &set).await? {
                Progress::Settled { made } => return Ok(made),
                Progress::Lacks(lack) => lack,
            };
            wait.say(&format!("waiting for the ApplicationSet `{name}`: {lack}"));
            if wait.is_over() {
                let (set, after) = (name.to_owned(), SETS_TIMEOUT);
                return Err(GeneratorError::Unsettled { set, after, lack });
            }
        }
    }

    /// Asks the set's controller to look at it, and waits until it has.
    async fn await_answer(
        &self,
        name: &str,
        wait: &mut Wait<'_>,
    ) -> Result<DynamicObject, GeneratorError> {
        loop {
            self.ask(name).await?;
            let asked = Instant::now();
            loop {
                let set = self.read_set(name).await?;
                if !set.annotations().contains_key(REFRESH) {
                    return Ok(set);
                }
                wait.say(&format!(
                    "waiting for the ApplicationSet controller to answer for `{name}`"
                ));
                let error = settled::error(&set);
                if wait.is_over() {
                    let said = error.map(str::to_owned);
                    let (set, after) = (name.to_owned(), SETS_TIMEOUT);
                    return Err(GeneratorError::SetUnanswered { set, after, said });
                }
                if error.is_some() && asked.elapsed() > ASK_AGAIN {
                    break;
                }
                tokio::time::sleep(POLL).await;
            }
        }
    }

    async fn ask(&self, name: &str) -> Result<(), GeneratorError> {
        let now = Timestamp::now().to_string();
        let asked = json!({ "metadata": { "annotations": { REFRESH: now } } });
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let what = format!("cannot refresh the ApplicationSet `{name}`");
        let answer = self.sets.patch(name, &params, &Patch::Merge(&asked)).await;
        answer.map(|_| ()).map_err(|error| RequestError::because(what)(error).into())
    }

    async fn read_set(&self, name: &str) -> Result<DynamicObject, GeneratorError> {
        let what = format!("cannot read the ApplicationSet `{name}`");
        Ok(self.sets.get(name).await.map_err(RequestError::because(what))?)
    }

    /// What the set should make, if Argo CD can be asked for it.
    async fn render(&self, set: &DynamicObject) -> Result<Option<Rendering>, CallError> {
        if !settled::is_renderable(set) {
            return Ok(None);
        }
        let argocd = &self.platform.argocd;
        let ours = |project: &&str| argocd.uses(project);
        let first = argocd.projects.first().map(String::as_str).unwrap_or_default();
        let project = settled::project(set).filter(ours).unwrap_or(first);
        let applications = self.argocd.render(set, project).await?;
        let project = project.to_owned();
        Ok(applications.map(|applications| Rendering { applications, project }))
    }

    /// Looks at the Applications of a set for one round.
    async fn await_applications(
        &self,
        name: &str,
        set: &DynamicObject,
    ) -> Result<Progress, GeneratorError> {
        let rendering = match self.render(set).await {
            Ok(rendering) => rendering,
            Err(source) if is_lasting(&source) => {
                return Err(GeneratorError::Render { set: name.to_owned(), source });
            }
            Err(error) => {
                tokio::time::sleep(ROUND).await;
                let message = error.to_string();
                // The rest is Argo CD's log.
                let message = message.lines().next().unwrap_or_default();
                return Ok(Progress::Lacks(format!("Argo CD cannot render it: {message}")));
            }
        };
        let kind = ApiResource::erase::<Application>(&());
        let client = self.sets.clone().into_client();
        let applications: Api<DynamicObject> =
            Api::namespaced_with(client, &self.platform.argocd.namespace, &kind);
        let began = Instant::now();
        loop {
            let set = self.read_set(name).await?;
            let children = application::list(&applications, |a| is_made_by(a, name)).await?;
            let Some(lack) = settled::unsettled(&set, &children, rendering.as_ref()) else {
                let made = children.iter().map(ResourceExt::name_any).collect();
                return Ok(Progress::Settled { made });
            };
            if began.elapsed() > ROUND {
                return Ok(Progress::Lacks(lack));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// How far a set has come.
enum Progress {
    /// With its Applications.
    Settled {
        made: Vec<String>,
    },
    Lacks(String),
}

/// What a run waits for, and since when. Each thing is said once.
struct Wait<'a> {
    since: Instant,
    note: &'a dyn Fn(String),
    said: String,
}

impl<'a> Wait<'a> {
    fn new(note: &'a dyn Fn(String)) -> Self {
        Wait { since: Instant::now(), note, said: String::new() }
    }

    fn say(&mut self, what: &str) {
        if self.since.elapsed() >= SAY_AFTER && self.said != what {
            what.clone_into(&mut self.said);
            (self.note)(what.to_owned());
        }
    }

    fn is_over(&self) -> bool {
        self.since.elapsed() > SETS_TIMEOUT
    }
}

/// Whether asking again would be answered in the same way.
fn is_lasting(error: &CallError) -> bool {
    match error {
        CallError::Refused { refusal, .. } => match refusal {
            Refusal::Unauthenticated | Refusal::Forbidden | Refusal::NotFound => true,
            Refusal::Window | Refusal::Busy | Refusal::Broken | Refusal::Other => false,
        },
        CallError::Unanswered { .. } => false,
    }
}

/// With it, the controller syncs its Applications itself, in an order of its own and as automated
/// syncs, which a hold denies: the run and the set would wait for each other.
fn refuse_rolling_sync(name: &str, set: &Value) -> Result<(), GeneratorError> {
    let strategy = set.pointer("/spec/strategy/type").and_then(Value::as_str).unwrap_or_default();
    if strategy != "RollingSync" {
        return Ok(());
    }
    Err(GeneratorError::RollingSync { set: name.to_owned() })
}

fn is_made_by(application: &DynamicObject, set: &str) -> bool {
    let owners = application.owner_references();
    owners.iter().any(|owner| owner.kind == "ApplicationSet" && owner.name == set)
}
