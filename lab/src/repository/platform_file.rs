//! The platform file of a repository.

use serde_json::json;
use tiphys_model::platform::{AppType, WorkflowMode};
use tiphys_model::{DeployMode, Trigger, TriggerKind, duration};

use super::scalar::{list, scalar};
use super::{AppSource, PlatformRepository};

pub(super) fn write(platform: &PlatformRepository) -> String {
    let mut text = format!(
        "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata:
  name: {name}
spec:
  source:
    repoURL: {url}
    targetRevision: {revision}
    path: root
  argocd:
    namespace: argocd
    project: {project}
    rootProject: {root}
",
        name = scalar(&platform.name),
        url = scalar(&platform.repo_url),
        revision = scalar(&platform.target_revision),
        project = scalar(&platform.project),
        root = scalar(&platform.root_project),
    );
    let mode = Some(platform.workflows).filter(|mode| *mode != WorkflowMode::default());
    let settings = [
        ("hold", platform.hold.map(|hold| hold.as_str().to_owned())),
        ("concurrency", platform.concurrency.map(|number| number.to_string())),
        ("timeout", platform.timeout.map(duration::format)),
        ("workflows", mode.map(|mode| mode.as_str().to_owned())),
        ("deploy", deploy_text(platform)),
    ];
    for (name, value) in settings {
        text.extend(value.map(|value| format!("  {name}: {value}\n")));
    }
    if !platform.triggers.is_empty() {
        text.push_str("  triggers:\n");
        text.extend(platform.triggers.iter().map(trigger_text));
    }
    text.push_str("  stacks:\n");
    let mut stacks: Vec<&str> = Vec::new();
    for app in &platform.apps {
        if !stacks.contains(&app.stack.as_str()) {
            stacks.push(&app.stack);
        }
    }
    for stack in stacks {
        text.push_str(&format!("    - name: {}\n      apps:\n", scalar(stack)));
        let apps = platform.apps.iter().filter(|app| app.stack == stack);
        text.extend(apps.map(app_text));
    }
    text
}

fn deploy_text(platform: &PlatformRepository) -> Option<String> {
    let mode = platform.deploy.as_str();
    if let Some(status) = &platform.commit_status {
        let mut fields = json!({ "provider": status.provider.as_str(), "api": status.api });
        if let Some(link) = &status.link {
            fields["link"] = link.as_str().into();
        }
        // What JSON says, YAML reads.
        return Some(json!({ "mode": mode, "commitStatus": fields }).to_string());
    }
    (platform.deploy != DeployMode::default()).then(|| mode.to_owned())
}

fn trigger_text(Trigger { name, kind }: &Trigger) -> String {
    let (kind, fields) = match kind {
        TriggerKind::Schedule(schedule) => {
            let mut fields = json!({
                "cron": schedule.at.text(), "action": schedule.action.as_str(),
                "scope": schedule.scope,
            });
            if let Some(zone) = schedule.at.time_zone() {
                fields["timeZone"] = zone.into();
            }
            ("schedule", fields)
        }
        TriggerKind::Push(push) => ("push", json!({ "provider": push.provider.as_str() })),
        TriggerKind::Resource(resource) => {
            let fields = json!({
                "apiVersion": resource.api_version, "kind": resource.kind,
                "label": resource.label.to_string(), "scope": resource.scope,
            });
            ("resource", fields)
        }
    };
    // What JSON says, YAML reads.
    format!("    - name: {}\n      {kind}: {fields}\n", scalar(name.as_str()))
}

fn app_text(app: &AppSource) -> String {
    let mut text = format!("        - name: {}\n", scalar(&app.name));
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("          {name}: {value}\n"));
    };
    if app.app_type != AppType::Simple {
        line("type", app.app_type.as_str().to_owned());
    }
    if let Some(typical) = app.typical {
        line("typical", duration::format(typical));
    }
    if !app.depends_on.is_empty() {
        line("dependsOn", list(&app.depends_on));
    }
    if let Some(timeouts) = app.timeouts {
        let (sync, health) = (duration::format(timeouts.sync), duration::format(timeouts.health));
        line("timeouts", format!("{{ sync: {sync}, health: {health} }}"));
    }
    if let Some(retry) = app.retry {
        let (first, max) =
            (duration::format(retry.backoff.duration), duration::format(retry.backoff.max));
        let backoff =
            format!("{{ duration: {first}, factor: {}, max: {max} }}", retry.backoff.factor);
        line("retry", format!("{{ limit: {}, backoff: {backoff} }}", retry.limit));
    }
    if !app.tolerate_drift.is_empty() {
        line("tolerateDrift", list(&app.tolerate_drift));
    }
    if !app.health.is_empty() {
        // What JSON says, YAML reads.
        line("health", serde_json::json!(app.health).to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tiphys_model::criterion::ResourceCriterion;
    use tiphys_model::platform::{Backoff, Hold, Retry, Timeouts};
    use tiphys_model::{
        CommitStatus, Criterion, Cron, Label, Platform, PushProvider, PushTrigger, ResourceTrigger,
        ScheduleTrigger, StatusProvider, TriggerAction, TriggerName,
    };
    use tiphys_spec::{Source, Sources};

    use super::*;
    use crate::repository::Behaviour;

    fn read(text: &str) -> Platform {
        let source = Source::new("platform.yaml", text.as_bytes().to_vec()).unwrap();
        tiphys_spec::platform(&Sources::new(vec![source])).unwrap_or_else(|problems| {
            panic!("{:#?}\n{text}", problems.into_sorted());
        })
    }

    #[test]
    fn everything_that_was_said_is_read_back() {
        let mut vault = AppSource::new("vault", Behaviour::ConfigOnly).depends_on(&["1e3"]);
        vault.app_type = AppType::Vault;
        vault.stack = "security".to_owned();
        vault.typical = Some(Duration::from_secs(90));
        let (sync, health) = (Duration::from_secs(7), Duration::from_secs(61));
        vault.timeouts = Some(Timeouts { sync, health });
        let backoff = Backoff { duration: sync, factor: 3, max: health };
        vault.retry = Some(Retry { limit: 5, backoff });
        vault.tolerate_drift = vec!["Deployment/vault".to_owned()];
        vault.health = vec![Criterion::Resource(ResourceCriterion {
            api_version: "ceph.rook.io/v1".to_owned(),
            expression: "obj.status.phase == \"Ready\"".to_owned(),
            kind: "CephCluster".to_owned(),
            name: "ceph".to_owned(),
            namespace: None,
        })];
        let mut written = PlatformRepository::new("p", "ssh://git@example.org/team/p.git")
            .with(AppSource::new("1e3", Behaviour::Empty))
            .with(vault.clone());
        written.hold = Some(Hold::Always);
        written.concurrency = Some(3);
        written.timeout = Some(Duration::from_secs(600));
        written.deploy = DeployMode::Automatic;
        written.commit_status = Some(CommitStatus {
            provider: StatusProvider::GitLab,
            api: "https://git.example/api".to_owned(),
            repository: "team/p".to_owned(),
            context: "tiphys/p".to_owned(),
            link: Some("https://page.example/?a=b".to_owned()),
        });
        let trigger = |name, kind| Trigger { name: TriggerName::parse(name).unwrap(), kind };
        let schedule = ScheduleTrigger {
            at: Cron::new("0 3 * * *", Some("Europe/Berlin")).unwrap(),
            action: TriggerAction::Validate,
            scope: "stack:security".parse().unwrap(),
        };
        let push = PushTrigger { provider: PushProvider::Generic };
        let resource = ResourceTrigger {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            label: Label::parse("team=a").unwrap(),
            scope: "app:vault".parse().unwrap(),
        };
        written.triggers = vec![
            trigger("certificates", TriggerKind::Resource(resource)),
            trigger("nightly", TriggerKind::Schedule(schedule)),
            trigger("push", TriggerKind::Push(push)),
        ];

        let platform = read(&write(&written));
        assert_eq!(platform.name.as_str(), "p");
        assert_eq!(platform.source.as_ref().unwrap().repo_url, written.repo_url);
        assert_eq!(platform.argocd.root_project, "p-root");
        assert_eq!(platform.policies.hold, Hold::Always);
        assert_eq!(platform.policies.concurrency.get(), 3);
        assert_eq!(platform.policies.timeout, Duration::from_secs(600));
        assert_eq!(platform.deploy.commit_status, written.commit_status);
        assert_eq!(platform.triggers, written.triggers);
        let app = &platform.apps[1];
        assert_eq!(app.stack.as_str(), "security");
        assert_eq!((app.app_type, Some(app.typical)), (vault.app_type, vault.typical));
        assert_eq!((Some(app.timeouts), Some(app.retry)), (vault.timeouts, vault.retry));
        assert_eq!((&app.tolerate_drift, &app.health), (&vault.tolerate_drift, &vault.health));
        assert_eq!(platform.apps[app.dependencies[0].app.position()].name.as_str(), "1e3");
    }
}
