//! The plan as a document: what `plan -o json` prints and what the digest covers.
//!
//! Fields are declared in alphabetical order, because that is the canonical form: the digest is
//! the SHA-256 of the document without white space and without `digest`, `criticalPath` and
//! `estimateSeconds`. Anybody can check it:
//!
//! ```sh
//! tiphys plan -o json | jq -cSj 'del(.digest, .criticalPath, .estimateSeconds)' | sha256sum
//! ```

use std::io;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use tiphys_model::plan::Digest;
use tiphys_model::platform::{AppType, Group, Hold};
use tiphys_model::{
    AppIx, AppName, Criterion, GroupName, Plan, PlatformName, Role, Scope, StackName,
};

use crate::definitions::HEALTH_DEFINITIONS;

/// Of plans as documents.
pub const API_VERSION: &str = "tiphys.dev/v1alpha1";

/// A plan, serialisable.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDocument<'a> {
    api_version: &'static str,
    apps: Apps<'a>,
    concurrency: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_path: Option<CriticalPath<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_seconds: Option<u64>,
    groups: &'a [Group],
    health_definitions: &'static str,
    hold: Hold,
    kind: &'static str,
    platform: &'a PlatformName,
    scope: &'a Scope,
    timeout_seconds: u64,
}

impl<'a> PlanDocument<'a> {
    #[must_use]
    pub fn new(plan: &'a Plan) -> Self {
        let apps = plan.critical_path.iter().map(|app| &plan.app(*app).app.name).collect();
        let seconds = plan.critical_path.first().map_or(0, |first| plan.app(*first).rank.as_secs());
        PlanDocument {
            critical_path: Some(CriticalPath { apps, seconds }),
            digest: Some(&plan.digest),
            estimate_seconds: Some(plan.estimate.as_secs()),
            ..Self::canonical(plan)
        }
    }

    /// The part that the digest covers.
    fn canonical(plan: &'a Plan) -> Self {
        PlanDocument {
            api_version: API_VERSION,
            apps: Apps(plan),
            concurrency: plan.policies.concurrency.get(),
            critical_path: None,
            digest: None,
            estimate_seconds: None,
            groups: &plan.policies.groups,
            health_definitions: HEALTH_DEFINITIONS,
            hold: plan.policies.hold,
            kind: "Plan",
            platform: &plan.platform,
            scope: &plan.scope,
            timeout_seconds: plan.policies.timeout.as_secs(),
        }
    }
}

#[derive(Debug, Serialize)]
struct CriticalPath<'a> {
    apps: Vec<&'a AppName>,
    seconds: u64,
}

/// Written one by one: a platform of 100,000 apps needs no second copy of itself.
#[derive(Debug)]
struct Apps<'a>(&'a Plan);

impl Serialize for Apps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.graph.apps().map(|app| AppDocument::new(self.0, app)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AppDocument<'a> {
    depends_on: Vec<DependencyDocument<'a>>,
    group: Option<&'a GroupName>,
    health: &'a [Criterion],
    layer: u32,
    name: &'a AppName,
    retry: RetryDocument,
    role: Role,
    stack: &'a StackName,
    timeouts: TimeoutsDocument,
    tolerate_drift: &'a [String],
    #[serde(rename = "type")]
    app_type: AppType,
    typical_seconds: u64,
}

#[derive(Serialize)]
struct DependencyDocument<'a> {
    app: &'a AppName,
    optional: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TimeoutsDocument {
    health_seconds: u64,
    sync_seconds: u64,
}

#[derive(Serialize)]
struct RetryDocument {
    backoff: BackoffDocument,
    limit: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackoffDocument {
    duration_seconds: u64,
    factor: u32,
    max_seconds: u64,
}

impl<'a> AppDocument<'a> {
    fn new(plan: &'a Plan, at: AppIx) -> Self {
        let planned = plan.app(at);
        let app = &planned.app;
        let dependency = |d: &tiphys_model::platform::Dependency| DependencyDocument {
            app: &plan.app(d.app).app.name,
            optional: d.optional,
        };
        AppDocument {
            depends_on: app.dependencies.iter().map(dependency).collect(),
            group: app.group.map(|group| &plan.policies.groups[group].name),
            health: &app.health,
            layer: planned.layer,
            name: &app.name,
            retry: RetryDocument {
                backoff: BackoffDocument {
                    duration_seconds: app.retry.backoff.duration.as_secs(),
                    factor: app.retry.backoff.factor,
                    max_seconds: app.retry.backoff.max.as_secs(),
                },
                limit: app.retry.limit,
            },
            role: planned.role,
            stack: &app.stack,
            timeouts: TimeoutsDocument {
                health_seconds: app.timeouts.health.as_secs(),
                sync_seconds: app.timeouts.sync.as_secs(),
            },
            tolerate_drift: &app.tolerate_drift,
            app_type: app.app_type,
            typical_seconds: app.typical.as_secs(),
        }
    }
}

/// Hashes the canonical form as it is written.
pub(crate) fn digest(plan: &Plan) -> Digest {
    let mut sink = io::BufWriter::new(HashSink(Sha256::new()));
    serde_json::to_writer(&mut sink, &PlanDocument::canonical(plan))
        .expect("a hash accepts every byte, and every part of a plan is plain JSON");
    let hash = sink.into_inner().expect("a hash accepts every byte").0;
    Digest::from_sha256(hash.finalize().into())
}

#[derive(Debug)]
struct HashSink(Sha256);

impl io::Write for HashSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
