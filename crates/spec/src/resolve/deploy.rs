//! Who starts deployments: windows that can open, and a root app to hear news from.

use tiphys_model::{AllowWindow, Cron, CronError, DeployMode, DeployPolicy};

use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::deploy::{AllowDocument, DeployDocument};
use crate::source::Spanned;

pub(super) fn resolve(
    given: DeployDocument,
    has_root_app: bool,
    problems: &mut Diagnostics,
) -> DeployPolicy {
    let mode = given.mode.value;
    if mode == DeployMode::Automatic && !has_root_app {
        let title = "`deploy: automatic` needs a root app";
        problems.push(Diagnostic::new(title, given.mode.span, "nothing shows what Git has").hint(
            "add `spec.source`, or remove this and start deployments from a terminal or a pipeline",
        ));
    }
    let windows = given.allow.items.into_iter();
    DeployPolicy { mode, allow: windows.filter_map(|one| window(one, problems)).collect() }
}

fn window(given: AllowDocument, problems: &mut Diagnostics) -> Option<AllowWindow> {
    let AllowDocument { schedule, duration, time_zone } = given;
    if duration.value.is_zero() {
        let title = "a window must be open for some time";
        problems.push(Diagnostic::new(title, duration.span, "must be greater than zero"));
    }
    let opens = cron(&schedule, time_zone.as_ref(), problems)?;
    Some(AllowWindow::new(opens, duration.value))
}

pub(super) fn cron(
    schedule: &Spanned<String>,
    time_zone: Option<&Spanned<String>>,
    problems: &mut Diagnostics,
) -> Option<Cron> {
    let error = match Cron::new(&schedule.value, time_zone.map(|zone| zone.value.as_str())) {
        Ok(cron) => return Some(cron),
        Err(error) => error,
    };
    let (wrong, hint) = match error {
        CronError::Schedule | CronError::Never => (
            Some(schedule),
            "write minute, hour, day, month and weekday, such as `0 22 * * mon-fri`",
        ),
        CronError::TimeZone => (time_zone, "write an IANA name, such as `Europe/Berlin`"),
    };
    let wrong = wrong.unwrap_or(schedule);
    let title = format!("{} {error}", quoted(&wrong.value));
    problems.push(Diagnostic::new(title, wrong.span, "invalid").hint(hint));
    None
}
