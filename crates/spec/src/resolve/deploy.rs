//! Who starts deployments: windows that can open, and a root app to hear news from.

use tiphys_model::{AllowWindow, DeployMode, DeployPolicy, WindowError};

use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::deploy::{AllowDocument, DeployDocument};

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
    let zone = time_zone.as_ref().map(|zone| zone.value.as_str());
    let error = match AllowWindow::new(&schedule.value, duration.value, zone) {
        Ok(window) => return Some(window),
        Err(error) => error,
    };
    let (wrong, hint) = match error {
        WindowError::Schedule | WindowError::Never => (
            Some(&schedule),
            "write minute, hour, day, month and weekday, such as `0 22 * * mon-fri`",
        ),
        WindowError::TimeZone => {
            (time_zone.as_ref(), "write an IANA name, such as `Europe/Berlin`")
        }
    };
    let wrong = wrong.unwrap_or(&schedule);
    let title = format!("{} {error}", quoted(&wrong.value));
    problems.push(Diagnostic::new(title, wrong.span, "invalid").hint(hint));
    None
}
