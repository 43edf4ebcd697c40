//! Rights and resources that preflight asks for, beside what bootstrap really applies.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tiphys_assess::preflight::quantity::{thousandths, units};
use tiphys_e2e::{Ground, figure, tiphys};
use tiphys_lab::Home;

use crate::setting::Setting;

pub(crate) async fn is_what_is_asked_for(ground: Arc<Ground>) {
    for (manifests, high_availability) in [("argocd.yaml", false), ("argocd-ha.yaml", true)] {
        let mut setting = Setting::new(&ground, "pre-same");
        setting.bootstrap = Some(format!("    highAvailability: {high_availability}\n"));
        let objects = rendered(&setting, manifests, high_availability).await;

        let seen = setting.look().await;
        let row = seen.checks().find(|check| check["name"] == "resources").expect("the row");
        assert_eq!(row["required"], requested(&objects), "{manifests}");

        // Somebody who may do nothing is told every right that is missing.
        tiphys::act_as(&ground.kubeconfig, "pre-nobody", &[], &setting.kubeconfig);
        let told = setting.look().await.found("cluster rights");
        let (_, told) = told.split_once(": ").expect("a list");
        let told: BTreeSet<&str> = told.split(", ").collect();
        for kind in objects.iter().map(|object| object["kind"].as_str().expect("a kind")) {
            for verb in ["get", "create", "patch"] {
                let right = format!("{verb} {}", resource(kind));
                assert!(told.contains(&*right), "{right} is not asked for: {told:?}");
            }
        }
        figure(&format!("{} objects: {}", objects.len(), requested(&objects)));
    }
}

/// Every object that the installer would apply.
async fn rendered(setting: &Setting, argocd: &str, high_availability: bool) -> Vec<Value> {
    let files = [("argocd", argocd), ("workflows", "workflows.yaml"), ("events", "events.yaml")];
    let mut text = format!(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: pre-same }}\nspec:\n  \
         source: {{ repoURL: '{}', targetRevision: main, path: root }}\n  \
         stacks: [{{ name: s, apps: [{{ name: a }}] }}]\n  \
         bootstrap:\n    highAvailability: {high_availability}\n",
        setting.repository
    );
    for (primitive, file) in files {
        let bytes = fs::read(Home::from_environment().manifests().join(file));
        let bytes = bytes.expect("manifests: start the lab with `lab up --with primitives`");
        fs::write(setting.file(file), &bytes).expect("the manifests");
        let checksum: String = Sha256::digest(bytes).iter().fold(String::new(), |mut all, byte| {
            write!(all, "{byte:02x}").expect("a String takes everything");
            all
        });
        text += &format!(
            "    {primitive}: {{ version: '1', manifests: {{ path: {file}, sha256: '{checksum}' }} }}\n"
        );
    }
    let platform = setting.write("rendered.yaml", &text);
    let file = platform.to_str().expect("a plain name");
    let arguments = ["bootstrap", "--render", "-o", "json", "-f", file];
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&arguments, Path::new("none")).await);
    assert_eq!(code, Some(0), "{stderr}");
    let stages: Value = serde_json::from_str(&stdout).expect("stages");
    let stages = stages["stages"].as_array().expect("stages").iter();
    stages.flat_map(|stage| stage["objects"].as_array().expect("objects").clone()).collect()
}

/// As Kubernetes calls it in addresses.
fn resource(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// What all pods together ask for. Containers that run first are over when the others begin.
fn requested(objects: &[Value]) -> String {
    let (mut processors, mut memory, mut pods) = (0, 0, 0);
    for object in objects {
        let spec = &object["spec"]["template"]["spec"];
        if !spec.is_object() {
            continue;
        }
        let sum = |name: &str, unit: fn(&str) -> Option<u64>| -> u64 {
            let containers = spec["containers"].as_array().expect("containers").iter();
            let asked = containers.map(|one| &one["resources"]["requests"][name]);
            asked.map(|text| unit(text.as_str().expect("a request")).expect("a quantity")).sum()
        };
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        processors += replicas * sum("cpu", thousandths);
        memory += replicas * sum("memory", units);
        pods += replicas;
    }
    format!("{processors}m CPU, {} MiB, {pods} pods", memory >> 20)
}
