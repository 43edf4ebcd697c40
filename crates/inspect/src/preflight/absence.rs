//! What must not be there yet, as RFC 3.2.7 lists it. What we installed before is fine.

use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, Client};
use tiphys_assess::preflight::{
    ABSENT_OR_INSTALLED, Check, NO_CLUSTER, Problem, Requirement, Section, Trouble,
};
use tiphys_model::Bootstrap;
use tiphys_model::bootstrap::{Primitive, PrimitiveName};

use super::{in_time, within};
use tiphys_install::bootstrap::{Found, found};

/// How the two usual ways to install sealed-secrets label its Deployment.
const SEALED_SECRETS: [&str; 2] =
    ["name=sealed-secrets-controller", "app.kubernetes.io/name=sealed-secrets"];

pub(super) async fn look(client: &Client, bootstrap: Option<&Bootstrap>) -> Vec<Check> {
    let primitives = join_all(PrimitiveName::ALL.map(|name| look_for(client, bootstrap, name)));
    let (primitives, sealed) = tokio::join!(primitives, sealed_secrets(client));
    primitives.into_iter().chain([judge_sealed_secrets(&sealed)]).collect()
}

async fn look_for(client: &Client, bootstrap: Option<&Bootstrap>, name: PrimitiveName) -> Check {
    match installed(bootstrap, name) {
        Ok(primitive) => judge(primitive, &in_time(found(client, primitive)).await),
        Err(why) => requirement(name).skipped(why),
    }
}

/// The same rows for a cluster that cannot be reached.
pub(super) fn out_of_reach(bootstrap: Option<&Bootstrap>) -> Vec<Check> {
    let why = NO_CLUSTER;
    let primitives = PrimitiveName::ALL
        .into_iter()
        .map(|name| requirement(name).skipped(installed(bootstrap, name).err().unwrap_or(why)));
    let sealed = sealed_secrets_requirement().skipped(why);
    primitives.chain([sealed]).collect()
}

/// Why the platform does not install it, otherwise.
fn installed(
    bootstrap: Option<&Bootstrap>,
    name: PrimitiveName,
) -> Result<&Primitive, &'static str> {
    let bootstrap =
        bootstrap.ok_or("nothing to install: the platform file has no `spec.bootstrap`")?;
    let primitive = bootstrap.primitives.iter().find(|primitive| primitive.name == name);
    primitive.ok_or("the platform file does not install it")
}

fn requirement(name: PrimitiveName) -> Requirement {
    Requirement::new(Section::Absence, name.title(), ABSENT_OR_INSTALLED)
}

fn judge(primitive: &Primitive, found: &Result<Found, Problem>) -> Check {
    let requirement = requirement(primitive.name);
    match found {
        Ok(Found::Absent) => requirement.passed("absent"),
        Ok(Found::Ours { version: Some(version) }) => {
            requirement.passed(format!("installed by Tiphys, {version}"))
        }
        Ok(Found::Ours { version: None }) => requirement.passed("installed by Tiphys, incomplete"),
        Ok(Found::Foreign { seen }) => {
            let found = format!("not installed by Tiphys: {}", seen.join(", "));
            let next = "remove it, or take it over with `tiphys bootstrap --adopt`";
            requirement.failed(Trouble::Missing, found, next)
        }
        Err(problem) => requirement.unknown(problem),
    }
}

fn sealed_secrets_requirement() -> Requirement {
    Requirement::new(Section::Absence, "sealed-secrets controller", "absent")
}

/// `NAMESPACE/NAME` of each controller.
async fn sealed_secrets(client: &Client) -> Result<Vec<String>, Problem> {
    let deployments: Api<Deployment> = Api::all(client.clone());
    let mut names = Vec::new();
    for label in SEALED_SECRETS {
        let labelled = ListParams::default().labels(label);
        let listed = deployments.list_metadata(&labelled);
        for found in within("cannot list Deployments", listed).await?.items {
            let metadata = found.metadata;
            let name = |part: Option<String>| part.unwrap_or_default();
            names.push(format!("{}/{}", name(metadata.namespace), name(metadata.name)));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn judge_sealed_secrets(found: &Result<Vec<String>, Problem>) -> Check {
    let requirement = sealed_secrets_requirement();
    match found {
        Ok(names) if names.is_empty() => requirement.passed("absent"),
        Ok(names) => {
            let next = "no action needed: its key is kept, so SealedSecrets can be decrypted";
            requirement.warned(names.join(", "), next)
        }
        Err(problem) => requirement.unknown(problem),
    }
}

#[cfg(test)]
mod tests {
    use tiphys_assess::preflight::Outcome;
    use tiphys_model::bootstrap::{Checksum, Manifests};

    use super::*;

    #[test]
    fn only_what_is_somebody_elses_is_in_the_way() {
        let primitive = Primitive {
            name: PrimitiveName::ArgoCd,
            version: "3.2.6".to_owned(),
            namespace: "argocd".to_owned(),
            manifests: Manifests::Path("argocd.yaml".to_owned()),
            checksum: Checksum::parse(&"0".repeat(64)).unwrap(),
            patches: None,
        };
        let judged = |found: Found| {
            let check = judge(&primitive, &Ok(found));
            (check.outcome, check.found)
        };
        let seen = vec!["the namespace argocd".to_owned()];
        let foreign = "not installed by Tiphys: the namespace argocd".to_owned();
        let version = Some("3.2.6".to_owned());
        assert_eq!(judged(Found::Absent), (Outcome::Pass, "absent".to_owned()));
        let ours = (Outcome::Pass, "installed by Tiphys, 3.2.6".to_owned());
        assert_eq!(judged(Found::Ours { version }), ours);
        assert_eq!(judged(Found::Ours { version: None }).0, Outcome::Pass);
        let failed = (Outcome::Fail(Trouble::Missing), foreign);
        assert_eq!(judged(Found::Foreign { seen }), failed);
    }

    #[test]
    fn sealed_secrets_is_a_warning() {
        let judged = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            judge_sealed_secrets(&Ok(names)).outcome
        };
        assert_eq!(judged(&[]), Outcome::Pass);
        assert_eq!(judged(&["kube-system/sealed-secrets-controller"]), Outcome::Warning);
    }
}
