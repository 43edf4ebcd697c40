//! What starts runs without a person: each by a name of its own.

use tiphys_model::{
    DeployMode, DeployPolicy, PushTrigger, ResourceTrigger, ScheduleTrigger, Trigger, TriggerKind,
};

use super::deploy::cron;
use crate::decode::List;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::trigger::{
    ChangedResourceDocument, PushDocument, ScheduleDocument, TriggerDocument,
};
use crate::source::Spanned;

pub(super) fn resolve(
    given: List<TriggerDocument>,
    deploy: &DeployPolicy,
    problems: &mut Diagnostics,
) -> Vec<Trigger> {
    let mut given = given.items;
    given.sort_by(|a, b| (&a.name.value, a.name.span).cmp(&(&b.name.value, b.name.span)));
    given.dedup_by(|again, first| {
        let twice = again.name.value == first.name.value;
        if twice {
            let title = format!("trigger {} is defined twice", quoted(first.name.value.as_str()));
            problems.push(
                Diagnostic::new(title, again.name.span, "again here")
                    .related(first.name.span, "first here")
                    .hint("rename or remove one of them"),
            );
        }
        twice
    });
    given.into_iter().filter_map(|one| trigger(one, deploy, problems)).collect()
}

fn trigger(
    given: TriggerDocument,
    deploy: &DeployPolicy,
    problems: &mut Diagnostics,
) -> Option<Trigger> {
    let kind = match (given.schedule, given.push, given.resource) {
        (Some(given), ..) => TriggerKind::Schedule(schedule(given, problems)?),
        (None, Some(given), _) => TriggerKind::Push(push(&given, deploy, problems)),
        (None, None, Some(given)) => TriggerKind::Resource(resource(given, problems)),
        (None, None, None) => return None,
    };
    Some(Trigger { name: given.name.value, kind })
}

fn schedule(given: ScheduleDocument, problems: &mut Diagnostics) -> Option<ScheduleTrigger> {
    let at = cron(&given.cron, given.time_zone.as_ref(), problems)?;
    let scope = given.scope.map(|scope| scope.0).unwrap_or_default();
    Some(ScheduleTrigger { at, action: given.action, scope })
}

/// It makes the deploy loop look at once, so there has to be one.
fn push(
    given: &Spanned<PushDocument>,
    deploy: &DeployPolicy,
    problems: &mut Diagnostics,
) -> PushTrigger {
    if deploy.mode != DeployMode::Automatic {
        let title = "a push trigger needs `deploy: automatic`";
        problems.push(
            Diagnostic::new(title, given.span, "would start nothing")
                .hint("add `deploy: automatic` to `spec`, or remove the trigger"),
        );
    }
    PushTrigger { provider: given.value.provider }
}

/// What watches objects can read them, whatever their label.
fn resource(given: ChangedResourceDocument, problems: &mut Diagnostics) -> ResourceTrigger {
    let ChangedResourceDocument { api_version, kind, label, scope } = given;
    if api_version == "v1" && kind.value == "Secret" {
        let title = "a resource trigger cannot watch Secrets";
        problems.push(
            Diagnostic::new(title, kind.span, "Argo Events would have to read all of them")
                .hint("watch what they are made from, such as a Certificate or a SealedSecret"),
        );
    }
    let scope = scope.map(|scope| scope.0).unwrap_or_default();
    ResourceTrigger { api_version, kind: kind.value, label: label.0, scope }
}
