use std::fmt::Write;

use tiphys_model::Scope;
use tiphys_spec::{Source, Sources};

use super::*;

pub(in crate::nodes) fn plan(apps: &str) -> Plan {
    let text = format!(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{name: prod}}\nspec:\n  \
         timeout: 1h\n  stacks:\n    - name: all\n      apps:\n{apps}"
    );
    let source = Source::new("platform.yaml", text.into_bytes()).unwrap();
    let platform = tiphys_spec::platform(&Sources::new(vec![source])).unwrap();
    tiphys_plan::plan(&platform, &Scope::Platform).unwrap()
}

/// So many apps, each but the first ten depends on three.
fn platform_of(apps: usize) -> Plan {
    let mut text = String::new();
    for app in 0..apps {
        let before: Vec<String> = [1, 5, 10]
            .into_iter()
            .filter(|_| app >= 10)
            .map(|back| format!("application-{:04}", app - back))
            .collect();
        let before = before.join(", ");
        writeln!(text, "        - {{name: application-{app:04}, dependsOn: [{before}]}}").unwrap();
    }
    plan(&text)
}

pub(in crate::nodes) fn pod() -> AgentPod {
    let pod = json!({
        "image": "registry.example/tiphys:1",
        "imagePullPolicy": "IfNotPresent",
        "imagePullSecrets": ["pull"],
        "tolerations": [{ "operator": "Exists" }],
    });
    serde_json::from_value(pod).unwrap()
}

fn workflow(plan: &Plan) -> Result<Value, TooLarge> {
    let run = NodesRun {
        plan,
        run: "0123456789ab-7",
        epoch: 7,
        argocd: "argocd",
        account: "tiphys.argocd.prod.nodes",
        owner: &Owner { name: "tiphys-deploy-abcde".to_owned(), uid: "u-1".to_owned() },
        pod: &pod(),
    };
    run.workflow()
}

#[test]
fn a_plan_becomes_a_dag_with_a_node_for_each_app() {
    let plan = plan(
        "        - {name: 1st.one}\n        - {name: b, dependsOn: [1st.one]}\n        \
         - {name: c, dependsOn: [b, 1st.one]}\n",
    );
    let workflow = workflow(&plan).unwrap();
    let templates = &workflow["spec"]["templates"];
    let task = |name: &str, app: &str, before: &[&str]| {
        let arguments = json!({ "parameters": [{ "name": "app", "value": app }] });
        let mut task = json!({ "name": name, "template": "app", "arguments": arguments });
        if !before.is_empty() {
            task["dependencies"] = json!(before);
        }
        task
    };
    let tasks = [
        task("app-1st-one", "1st.one", &[]),
        task("b", "b", &["app-1st-one"]),
        task("c", "c", &["app-1st-one", "b"]),
    ];
    assert_eq!(templates[0]["dag"], json!({ "failFast": false, "tasks": tasks }));
    assert_eq!(templates[1]["plugin"], json!({ "tiphys": { "app": "{{inputs.parameters.app}}" } }));
    assert_eq!(workflow["spec"]["activeDeadlineSeconds"], 4200);
    assert_eq!(workflow["spec"]["imagePullSecrets"], json!([{ "name": "pull" }]));
    assert_eq!(workflow["metadata"]["ownerReferences"][0]["uid"], "u-1");
}

#[test]
fn the_executor_is_the_only_plugin_and_knows_its_run() {
    let workflow = workflow(&platform_of(1)).unwrap();
    let patch = workflow["spec"]["podSpecPatch"].as_str().unwrap();
    let patch: Value = serde_json::from_str(patch).unwrap();
    let plugin = &patch["containers"][1];
    assert_eq!(plugin["command"], json!(["/tiphys", "executor", "plugin"]));
    let variables: Vec<(&str, &str)> = plugin["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap()))
        .collect();
    let expected =
        [("TIPHYS_PLATFORM", "prod"), ("TIPHYS_NAMESPACE", "argocd"), ("TIPHYS_EPOCH", "7")];
    assert_eq!(variables, expected);
    let names = json!({ "name": "ARGO_PLUGIN_NAMES", "value": "[\"tiphys\"]" });
    for container in [&patch["initContainers"][0], &patch["containers"][0]] {
        assert_eq!(container["env"][0], names, "{container}");
    }
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let bytes = || workflow(&platform_of(30)).unwrap().to_string();
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_thousand_apps_fit_and_what_does_not_fit_is_refused_with_its_size() {
    assert!(workflow(&platform_of(1000)).is_ok());
    let refused = workflow(&platform_of(2000)).unwrap_err();
    assert_eq!(refused.apps, 2000);
    assert!(refused.explain().why.starts_with("2000 apps need"), "{refused}");
}
