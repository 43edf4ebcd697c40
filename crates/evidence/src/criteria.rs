//! The extra health criteria of the platform file, asked of what runs.
//!
//! A criterion holds, or there is a text that says what was found instead. Whatever goes wrong
//! on the way is such a text too: a criterion that could not be asked does not hold.

mod http;
mod postgres;
mod redis;
mod resource;
mod route;
mod tcp;

use std::sync::Arc;
use std::time::Duration;

use ::kube::Client;
use futures::future::join_all;
use tiphys_model::Criterion;
use tiphys_model::criterion::ServiceCriterion;

use route::Route;
use tiphys_argocd::Destination;
use tiphys_cluster::Place;

/// How long one attempt may take: a service that accepts and then hangs must not hold up a run.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks criteria.
#[derive(Clone)]
pub struct Prober {
    client: Client,
    place: Place,
}

impl Prober {
    #[must_use]
    pub fn new(client: Client, place: Place) -> Self {
        Prober { client, place }
    }

    /// All criteria of an app, at once: those that do not hold, each with what was found.
    ///
    /// Of another cluster nothing is asked: what has the same name here is something else.
    pub async fn probe(&self, criteria: &[Criterion], at: &Destination) -> Vec<Arc<str>> {
        if let Some(cluster) = &at.other_cluster {
            let found = format!("it runs on the cluster {cluster}, which Tiphys cannot check");
            return criteria.iter().map(|criterion| unmet(criterion, &found)).collect();
        }
        let asked = criteria.iter().map(|criterion| async move {
            let namespace = criterion.namespace().unwrap_or(&at.namespace);
            let found =
                tokio::time::timeout(PROBE_TIMEOUT, self.ask_one(criterion, namespace)).await;
            let late = |_| Err(format!("no answer within {} s", PROBE_TIMEOUT.as_secs()));
            found.unwrap_or_else(late).err().map(|found| unmet(criterion, &found))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn ask_one(&self, criterion: &Criterion, namespace: &str) -> Result<(), String> {
        let route = |service: &str, port: u16| Route {
            client: &self.client,
            place: self.place,
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port,
        };
        let to = |at: &ServiceCriterion| route(&at.service, at.port);
        match criterion {
            Criterion::Resource(wanted) => resource::ask(&self.client, wanted, namespace).await,
            Criterion::Tcp(at) => tcp::ask(to(at).open().await?).await,
            Criterion::Postgres(at) => postgres::ask(to(at).open().await?).await,
            Criterion::Redis(at) => redis::ask(to(at).open().await?).await,
            Criterion::Http(wanted) => {
                let route = route(&wanted.service, wanted.port);
                http::ask(route.open().await?, wanted, &route.host()).await
            }
        }
    }
}

/// What stands for criteria that nobody has asked yet.
#[must_use]
pub fn unprobed(criteria: &[Criterion]) -> Vec<Arc<str>> {
    criteria.iter().map(|criterion| unmet(criterion, "not checked yet")).collect()
}

fn unmet(criterion: &Criterion, found: &str) -> Arc<str> {
    format!("{criterion}: {found}").into()
}

#[cfg(test)]
mod tests {
    use tiphys_cluster::scripted::{self, Answer};
    use tiphys_model::criterion::ResourceCriterion;

    use super::*;

    fn criteria() -> [Criterion; 2] {
        let service = ServiceCriterion { service: "db".into(), port: 5432, namespace: None };
        let resource = ResourceCriterion {
            api_version: "v1".into(),
            kind: "Secret".into(),
            name: "db".into(),
            namespace: None,
            expression: "true".into(),
        };
        [Criterion::Tcp(service), Criterion::Resource(resource)]
    }

    #[tokio::test]
    async fn nothing_here_is_asked_about_an_app_on_another_cluster() {
        let client = scripted::client(|asked| -> Answer { panic!("{} was asked", asked.path) });
        let prober = Prober::new(client, Place::Outside);
        let at = Destination { namespace: "db".into(), other_cluster: Some("edge".into()) };
        let unmet = prober.probe(&criteria(), &at).await;
        let why = "it runs on the cluster edge, which Tiphys cannot check";
        assert_eq!(unmet, criteria().map(|criterion| format!("{criterion}: {why}").into()));
    }
}
