//! Which generators are the platform's.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCd;

use super::{Generator, Generators};
use crate::teardown::TeardownError;
use tiphys_argocd::application::Application;
use tiphys_argocd::application_set;
use tiphys_cluster::RequestError;

impl Generators {
    /// Those of the platform: the Applications in the generators' project, and ApplicationSets
    /// whose Applications are in one of the platform's projects.
    pub(in crate::teardown) async fn find(
        client: &Client,
        platform: &Platform,
        applications: &[Application],
    ) -> Result<Self, TeardownError> {
        let sets = application_set::api(client, &platform.argocd.namespace);
        let listed = match sets.list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            // An Argo CD without ApplicationSets.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => {
                let what = "the ApplicationSets cannot be listed";
                return Err(RequestError::because(what)(error).into());
            }
        };
        Generators::among(&platform.argocd, applications, &listed)
    }

    /// The template of a set says which project its Applications are in, unless that is a template
    /// itself; then its Applications do, and who has created it.
    pub(super) fn among(
        argocd: &ArgoCd,
        applications: &[Application],
        sets: &[DynamicObject],
    ) -> Result<Self, TeardownError> {
        let mut found = Generators::default();
        for application in applications {
            if application.spec.project == argocd.root_project {
                found.take_application(application);
            }
        }
        let ours = |project: &str| project == argocd.project || project == argocd.root_project;
        let children = by_set(applications);
        for set in sets {
            let name = set.name_any();
            let project = set.data.pointer("/spec/template/spec/project").and_then(Value::as_str);
            let project = project.unwrap_or_default();
            let is_ours = ours(project) || (project.contains("{{") && found.creates_set(&name));
            if !is_ours {
                let made = children.get(&*name).map(Vec::as_slice).unwrap_or_default();
                let (made, others): (Vec<&Application>, Vec<&Application>) =
                    made.iter().partition(|child| ours(&child.spec.project));
                if made.is_empty() {
                    continue;
                }
                refuse_shared(&name, &others)?;
            }
            found.children.entry(Generator::Set(name)).or_default();
        }
        Ok(found)
    }

    fn creates_set(&self, name: &str) -> bool {
        let set = Generator::Set(name.to_owned());
        self.children.values().any(|created| created.contains(&set))
    }
}

/// The Applications that each ApplicationSet has made.
fn by_set(applications: &[Application]) -> BTreeMap<&str, Vec<&Application>> {
    let mut made: BTreeMap<&str, Vec<&Application>> = BTreeMap::new();
    for application in applications {
        let owners = application.owner_references().iter();
        for owner in owners.filter(|owner| owner.kind == "ApplicationSet") {
            made.entry(&owner.name).or_default().push(application);
        }
    }
    made
}

/// Without the set, nobody would look after the Applications of others any more.
fn refuse_shared(set: &str, others: &[&Application]) -> Result<(), TeardownError> {
    if others.is_empty() {
        return Ok(());
    }
    let others = others.iter().map(|application| application.name().to_owned()).collect();
    Err(TeardownError::SharedSet { set: set.to_owned(), others })
}
