//! Who starts deployments, as the file says it.

use std::time::Duration;

use tiphys_model::{DeployMode, StatusProvider};

use super::bootstrap::Https;
use super::object::document;
use crate::decode::{Decode, List};
use crate::diagnostic::Diagnostics;
#[cfg(test)]
use crate::schema;
use crate::source::Spanned;
use crate::yaml::{Content, Node};

/// A mode, or an object with the times in which deployments may start.
#[derive(Debug)]
pub(crate) struct DeployDocument {
    pub(crate) mode: Spanned<DeployMode>,
    pub(crate) allow: List<AllowDocument>,
    pub(crate) commit_status: Option<Spanned<CommitStatusDocument>>,
}

document! {
    #[schemars(rename = "DeployPolicy")]
    DeployObject, "a deploy policy" {
        #[schemars(schema_with = "schema::deploy_mode")]
        mode: Spanned<DeployMode> = required("mode"),
        /// The deploy loop starts deployments only while one of these windows is open.
        #[schemars(with = "Vec<AllowDocument>")]
        allow: List<AllowDocument> = defaulted("allow"),
        /// Commits show on the Git server what became of their deployment.
        #[schemars(with = "CommitStatusDocument")]
        commit_status: Option<Spanned<CommitStatusDocument>> = optional("commitStatus"),
    }
}

document! {
    #[schemars(rename = "CommitStatus")]
    CommitStatusDocument, "a commit status" {
        /// Whose API the Git server has: `github` (also Gitea and Forgejo) or `gitlab`.
        #[schemars(schema_with = "schema::status_provider")]
        provider: StatusProvider = required("provider"),
        /// The address of the API; found by the host in `source.repoURL` unless given.
        #[schemars(schema_with = "schema::https")]
        api: Option<Https> = optional("api"),
        /// The page that a status links to.
        #[schemars(schema_with = "schema::https")]
        link: Option<Https> = optional("link"),
    }
}

document! {
    #[schemars(rename = "AllowWindow")]
    AllowDocument, "a window" {
        /// When it opens: a cron schedule of five fields.
        #[schemars(schema_with = "schema::cron")]
        schedule: Spanned<String> = required("schedule"),
        /// How long it stays open.
        #[schemars(schema_with = "schema::duration")]
        duration: Spanned<Duration> = required("duration"),
        /// The IANA name of the schedule's time zone; UTC unless given.
        #[schemars(schema_with = "schema::text")]
        time_zone: Option<Spanned<String>> = optional("timeZone"),
    }
}

impl Decode for DeployDocument {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        if let Content::Mapping(_) = node.content() {
            let DeployObject { mode, allow, commit_status } = DeployObject::decode(node, problems)?;
            return Some(DeployDocument { mode, allow, commit_status });
        }
        let mode = Spanned::<DeployMode>::decode(node, problems)?;
        Some(DeployDocument { mode, allow: List::default(), commit_status: None })
    }
}
