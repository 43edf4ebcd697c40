//! Who starts deployments: windows that can open, and a root app to hear news from.

use tiphys_model::commit_status::server_and_path;
use tiphys_model::{
    AllowWindow, CommitStatus, Cron, CronError, DeployMode, DeployPolicy, PlatformName,
};

use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::deploy::{AllowDocument, CommitStatusDocument, DeployDocument};
use crate::source::Spanned;

/// What a deploy policy is about.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The address of the root app's source, if there is a root app.
    pub(super) repository: Option<&'a str>,
    pub(super) platform: &'a PlatformName,
    pub(super) environment: Option<&'a str>,
}

pub(super) fn resolve(
    given: DeployDocument,
    subject: Subject<'_>,
    problems: &mut Diagnostics,
) -> DeployPolicy {
    let mode = given.mode.value;
    if mode == DeployMode::Automatic && subject.repository.is_none() {
        let title = "`deploy: automatic` needs a root app";
        problems.push(Diagnostic::new(title, given.mode.span, "nothing shows what Git has").hint(
            "add `spec.source`, or remove this and start deployments from a terminal or a pipeline",
        ));
    }
    let windows = given.allow.items.into_iter();
    let allow = windows.filter_map(|one| window(one, problems)).collect();
    let commit_status =
        given.commit_status.and_then(|given| commit_status(given, mode, subject, problems));
    DeployPolicy { mode, allow, commit_status }
}

/// The deploy loop sets it, so there has to be one.
fn commit_status(
    given: Spanned<CommitStatusDocument>,
    mode: DeployMode,
    subject: Subject<'_>,
    problems: &mut Diagnostics,
) -> Option<CommitStatus> {
    if mode != DeployMode::Automatic {
        let title = "`commitStatus` needs `mode: automatic`";
        problems.push(
            Diagnostic::new(title, given.span, "would never be set")
                .hint("set `mode: automatic`, or remove `commitStatus`"),
        );
        return None;
    }
    // Without a root app, this is about a platform that has been refused already.
    let Some((server, path)) = server_and_path(subject.repository?) else {
        let title = "cannot tell which repository the commits are in";
        problems.push(
            Diagnostic::new(title, given.span, "`source.repoURL` ends without owner and name")
                .hint("remove `commitStatus`, or use a repository such as `https://HOST/OWNER/NAME.git`"),
        );
        return None;
    };
    let CommitStatusDocument { provider, api, link } = given.value;
    let api = api.map_or_else(|| provider.api_at(server), |api| api.0);
    Some(CommitStatus {
        provider,
        api: api.trim_end_matches('/').to_owned(),
        repository: path.to_owned(),
        // Platforms in the same repository each have their own.
        context: match subject.environment {
            Some(environment) => format!("tiphys/{environment}/{}", subject.platform),
            None => format!("tiphys/{}", subject.platform),
        },
        link: link.map(|link| link.0),
    })
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
