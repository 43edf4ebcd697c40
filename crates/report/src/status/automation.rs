//! What starts runs without a person: the deploy loop, schedules and webhooks.

use std::fmt;

use tiphys_assess::deploy_loop::commit::Told;
use tiphys_assess::deploy_loop::validation::Validated;
use tiphys_assess::deploy_loop::{News, Pause, short};
use tiphys_assess::status::{LoopStatus, ScheduleStatus, WebhookStatus};
use tiphys_model::Scope;

use crate::harmless::one_line;
use crate::style::{FAINT, WARNING, paint};

pub(super) fn deploy_loop(f: &mut fmt::Formatter<'_>, status: &LoopStatus) -> fmt::Result {
    let label = paint(FAINT, "automatic deployments:");
    writeln!(f, "{label} {}", standing(status))?;
    if let Some(Told { revision, refused: Some(why), .. }) = &status.told {
        let (warning, why) = (paint(WARNING, "warning:"), one_line(why));
        let revision = one_line(short(revision));
        writeln!(f, "{warning} the Git server refused the commit status of {revision}: {why}")?;
    }
    for (trigger, Validated { workflow, at, .. }) in &status.validated {
        let (label, trigger) = (paint(FAINT, "trigger"), one_line(trigger));
        let workflow = one_line(workflow);
        writeln!(f, "{label} {trigger}: validated after a change at {at:.0}, workflow {workflow}")?;
    }
    Ok(())
}

fn standing(status: &LoopStatus) -> String {
    let LoopStatus { pause, seen, asleep, told: _, validated: _ } = status;
    let since = seen.as_ref().map(|seen| format!(" since {:.0}", seen.at));
    if let Some(Pause { by, at, reason }) = pause {
        let reason = reason.as_ref().map(|reason| format!(": {}", one_line(reason)));
        let word = paint(WARNING, "paused");
        let by = one_line(by);
        return format!("{word} by {by} since {at:.0}{}", reason.unwrap_or_default());
    }
    match seen {
        Some(seen) if !asleep => one_line(&seen.next.to_string()),
        Some(_) | None => {
            let since = since.unwrap_or_default();
            let word = paint(WARNING, "nobody has looked");
            format!("{word}{since}: check the Deployment tiphys-serve in tiphys-system")
        }
    }
}

pub(super) fn schedules(f: &mut fmt::Formatter<'_>, schedules: &[ScheduleStatus]) -> fmt::Result {
    for ScheduleStatus { name, action, scope, last, next } in schedules {
        let of = match scope {
            Scope::Platform => String::new(),
            scope @ Scope::Parts(_) => format!(" of {scope}"),
        };
        let next = next.map_or("never again".to_owned(), |next| format!("next at {next:.0}"));
        let last = last.map(|last| format!(", last at {last:.0}")).unwrap_or_default();
        let label = paint(FAINT, "schedule");
        writeln!(f, "{label} {}: {action}{of}, {next}{last}", one_line(name))?;
    }
    Ok(())
}

pub(super) fn webhooks(f: &mut fmt::Formatter<'_>, webhooks: &[WebhookStatus]) -> fmt::Result {
    for WebhookStatus { name, provider, address, last, missed } in webhooks {
        let (label, name) = (paint(FAINT, "webhook"), one_line(name));
        let last =
            last.map_or("never called".to_owned(), |last| format!("last called at {last:.0}"));
        writeln!(f, "{label} {name}: {provider}, {}, {last}", one_line(address))?;
        if let Some(News { revision, at }) = missed {
            let warning = paint(WARNING, "warning:");
            let revision = one_line(short(revision));
            writeln!(
                f,
                "{warning} no call of {name} for {revision}, found at {at:.0}: check the webhook in the Git \
                 server, and run `tiphys triggers test {name}`"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use tiphys_assess::deploy_loop::{Next, SeenByLoop};

    use super::super::tests::plain;
    use super::*;

    #[test]
    fn automatic_deployments_are_shown_in_one_line() {
        let at: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        let next = Next::UpToDate { revision: "1.2.3".to_owned() };
        let seen = SeenByLoop::new(at, "tiphys on pod-7", next, None);
        let pause = |reason: Option<&str>| Pause {
            by: "alice".to_owned(),
            at,
            reason: reason.map(str::to_owned),
        };
        let minutes = |minutes: i64| at + SignedDuration::from_mins(minutes);
        let line = |pause, seen, now| plain(&standing(&LoopStatus::new(pause, seen, now)));
        let seen = || Some(seen.clone());
        assert_eq!(line(None, seen(), minutes(2)), "1.2.3 is deployed");
        let nobody = "check the Deployment tiphys-serve in tiphys-system";
        let asleep = format!("nobody has looked since 2026-11-19T12:00:00Z: {nobody}");
        assert_eq!(line(None, seen(), minutes(4)), asleep);
        assert_eq!(line(None, None, at), format!("nobody has looked: {nobody}"));
        let paused = "paused by alice since 2026-11-19T12:00:00Z";
        assert_eq!(line(Some(pause(None)), seen(), at), paused);
        assert_eq!(line(Some(pause(Some("an\naudit"))), None, at), format!("{paused}: an audit"));
    }
}
