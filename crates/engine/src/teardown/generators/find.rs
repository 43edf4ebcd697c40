//! Which generators are the platform's.

use std::collections::BTreeSet;

use kube::api::{DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCd;

use crate::created::{Creations, Generator};
use crate::teardown::TeardownError;
use tiphys_argocd::application::Application;
use tiphys_argocd::{app_project, application_set};
use tiphys_cluster::names::{self, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError};

/// What is known of the platform's part of Argo CD.
pub(super) struct Ours<'a> {
    pub(super) argocd: &'a ArgoCd,
    pub(super) root: String,
    /// Names of apps.
    pub(super) apps: &'a BTreeSet<String>,
    /// Projects that nobody else is meant to use.
    pub(super) own: BTreeSet<String>,
}

/// Those of the platform, each before what it creates: the other way round, it would create that
/// anew.
pub(in crate::teardown) async fn find(
    client: &Client,
    platform: &Platform,
    apps: &BTreeSet<String>,
    applications: &[Application],
) -> Result<Vec<Generator>, TeardownError> {
    let sets = application_set::api(client, &platform.argocd.namespace);
    let listed = match sets.list(&ListParams::default()).await {
        Ok(listed) => listed.items,
        // An Argo CD without ApplicationSets.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            let what = "cannot list the ApplicationSets";
            return Err(RequestError::because(what)(error).into());
        }
    };
    let ours = Ours {
        argocd: &platform.argocd,
        root: names::root_application(platform),
        apps,
        own: own_projects(client, platform).await?,
    };
    ours.generators(applications, &listed)
}

/// That of the root app, and those that `configure` has made for this platform. Without Argo CD there
/// are none.
async fn own_projects(
    client: &Client,
    platform: &Platform,
) -> Result<BTreeSet<String>, RequestError> {
    let projects = app_project::api(client, &platform.argocd.namespace);
    let mut own = BTreeSet::from([platform.argocd.root_project.clone()]);
    for name in &platform.argocd.projects {
        let what = format!("cannot read the AppProject `{name}`");
        let found = match projects.get_opt(name).await.map_err(RequestError::because(what)) {
            Err(error) if error.cause() == Cause::NotFound => None,
            found => found?,
        };
        let owner = found.and_then(|found| found.labels().get(PLATFORM_LABEL).cloned());
        if owner.as_deref() == Some(platform.name.as_str()) {
            own.insert(name.clone());
        }
    }
    Ok(own)
}

impl Ours<'_> {
    /// Known by what they have created; and in a project of the platform's own, by being there. The
    /// template of a set says which project its Applications are in, unless that is a template
    /// itself; then who has created it decides.
    pub(super) fn generators(
        &self,
        applications: &[Application],
        sets: &[DynamicObject],
    ) -> Result<Vec<Generator>, TeardownError> {
        let creations = Creations::among(applications);
        let own = applications.iter().filter(|one| self.own.contains(&one.spec.project));
        // One in another project has moved to another platform, and so has what creates it.
        let moved = |one: &&Application| !self.argocd.has_apps_in(&one.spec.project);
        let moved: BTreeSet<&str> =
            applications.iter().filter(moved).map(Application::name).collect();
        let apps = self.apps.iter().map(String::as_str).filter(|app| !moved.contains(app));
        let apps = own.map(Application::name).chain(apps);
        let mut found = creations.generators_of(apps, &self.root);
        let in_root = |one: &&Application| one.spec.project == self.argocd.root_project;
        let roots = applications.iter().filter(in_root).map(Application::name);
        found.extend(roots.map(|name| Generator::Application(name.to_owned())));
        for set in sets {
            let generator = Generator::Set(set.name_any());
            let project = set.data.pointer("/spec/template/spec/project").and_then(Value::as_str);
            let project = project.unwrap_or_default();
            let created = || found.iter().any(|one| creations.of(one).any(|c| *c == generator));
            if self.own.contains(project) || (project.contains("{{") && created()) {
                found.insert(generator);
            }
        }
        found.retain(|generator| match generator {
            Generator::Application(name) => !self.apps.contains(name),
            Generator::Set(_) => true,
        });
        for generator in &found {
            self.refuse_shared(generator, &creations, &found, applications)?;
        }
        Ok(creations.in_order(&found))
    }

    /// Without it, nobody would look after the Applications of others any more.
    fn refuse_shared(
        &self,
        generator: &Generator,
        creations: &Creations,
        found: &BTreeSet<Generator>,
        applications: &[Application],
    ) -> Result<(), TeardownError> {
        let named = |name: &str| applications.iter().find(|one| one.name() == name);
        if let Generator::Application(name) = generator {
            let project = named(name).map(|one| one.spec.project.clone()).unwrap_or_default();
            if project == self.argocd.root_project {
                return Ok(());
            }
            if !self.argocd.uses(&project) {
                return Err(TeardownError::GeneratorElsewhere { generator: name.clone(), project });
            }
        }
        let is_of_others = |child: &&Generator| match child {
            Generator::Application(name) => {
                let there = named(name);
                !found.contains(*child)
                    && !self.apps.contains(name)
                    && there.is_some_and(|one| !self.own.contains(&one.spec.project))
            }
            Generator::Set(_) => false,
        };
        let others = creations.of(generator).filter(is_of_others);
        let others: Vec<String> = others.map(|child| child.name().to_owned()).collect();
        if others.is_empty() {
            return Ok(());
        }
        let is_set = matches!(generator, Generator::Set(_));
        let generator = generator.name().to_owned();
        Err(TeardownError::SharedGenerator { generator, is_set, others })
    }
}
