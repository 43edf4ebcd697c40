//! What starts runs without a person: each by a name of its own.

use tiphys_model::{ScheduleTrigger, Trigger};

use super::deploy::cron;
use crate::decode::List;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::trigger::TriggerDocument;

pub(super) fn resolve(given: List<TriggerDocument>, problems: &mut Diagnostics) -> Vec<Trigger> {
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
    given.into_iter().filter_map(|one| trigger(one, problems)).collect()
}

fn trigger(given: TriggerDocument, problems: &mut Diagnostics) -> Option<Trigger> {
    let at = cron(&given.schedule.cron, given.schedule.time_zone.as_ref(), problems)?;
    let schedule = ScheduleTrigger {
        at,
        action: given.schedule.action,
        scope: given.schedule.scope.map(|scope| scope.0).unwrap_or_default(),
    };
    Some(Trigger { name: given.name.value, schedule })
}
