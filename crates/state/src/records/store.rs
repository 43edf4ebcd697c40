//! Where records are kept.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::names::{ARGOCD_LABEL, FIELD_MANAGER, MANAGED_BY, NAMESPACE, PLATFORM_LABEL};
use tiphys_cluster::{RequestError, delete};
use tiphys_model::PlatformName;

use super::RunHead;

/// How many runs of a platform are kept.
const KEPT: usize = 20;
const PART: &str = "tiphys.dev/record";
const RUN: &str = "tiphys.dev/run";
const HEAD: &str = "run.json";
const LINES: &str = "events.jsonl";

/// The records of a cluster.
#[derive(Clone)]
pub struct RecordStore {
    maps: Api<ConfigMap>,
}

/// A record that is there.
#[derive(Debug, Clone)]
pub struct Found {
    pub head: RunHead,
    name: String,
}

impl RecordStore {
    #[must_use]
    pub fn new(client: &Client) -> Self {
        RecordStore { maps: Api::namespaced(client.clone(), NAMESPACE) }
    }

    /// What is there of the platforms of one Argo CD, or of one of them; the newest first.
    pub async fn list(
        &self,
        argocd: &str,
        platform: Option<&PlatformName>,
    ) -> Result<Vec<Found>, RequestError> {
        let mut labels = format!("{PART}=head,{ARGOCD_LABEL}={argocd}");
        if let Some(platform) = platform {
            labels += &format!(",{PLATFORM_LABEL}={platform}");
        }
        let listed = self.maps.list(&ListParams::default().labels(&labels)).await;
        let listed = listed.map_err(RequestError::because("cannot list the records of runs"))?;
        let read = |map: ConfigMap| {
            // One of a newer version, or that somebody has edited, is not shown.
            let head = serde_json::from_str(map.data.as_ref()?.get(HEAD)?).ok()?;
            Some(Found { head, name: map.name_any() })
        };
        let mut found: Vec<Found> = listed.items.into_iter().filter_map(read).collect();
        found.sort_by_key(|found| std::cmp::Reverse(found.head.started));
        Ok(found)
    }

    /// The lines that have been written, in order, without those of the first `read` segments.
    pub async fn lines_after(&self, found: &Found, read: usize) -> Result<String, RequestError> {
        let mut lines = String::new();
        for number in read + 1..=found.head.segments {
            let name = segment_name(&found.name, number);
            let what = format!("cannot read the record {name}");
            let segment = self.maps.get(&name).await.map_err(RequestError::because(what))?;
            lines += segment.data.as_ref().and_then(|data| data.get(LINES)).map_or("", |l| l);
        }
        Ok(lines)
    }

    /// Writes a head; its uid.
    pub(super) async fn write_head(&self, head: &RunHead) -> Result<String, RequestError> {
        let name = head.name();
        let text = serde_json::to_string(head).unwrap_or_default();
        let map = ConfigMap {
            metadata: metadata(head, &name, "head"),
            data: Some(BTreeMap::from([(HEAD.to_owned(), text)])),
            ..ConfigMap::default()
        };
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let written = self.maps.patch(&name, &params, &Patch::Apply(&map)).await;
        let written =
            written.map_err(RequestError::because("cannot write the record of the run"))?;
        Ok(written.uid().unwrap_or_default())
    }

    /// Writes a segment, which goes with its head.
    pub(super) async fn write_segment(
        &self,
        head: &RunHead,
        uid: &str,
        number: usize,
        lines: &str,
    ) -> Result<(), RequestError> {
        let name = head.name();
        let mut metadata = metadata(head, &segment_name(&name, number), "events");
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name,
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }]);
        let map = ConfigMap {
            metadata,
            data: Some(BTreeMap::from([(LINES.to_owned(), lines.to_owned())])),
            immutable: Some(true),
            ..ConfigMap::default()
        };
        match self.maps.create(&PostParams::default(), &map).await {
            Ok(_) => Ok(()),
            // The answer to an attempt before this one was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(RequestError::because("cannot write the record of the run")(error)),
        }
    }

    /// Removes all but the newest records of the head's platform; their segments go with them.
    pub(super) async fn forget_old(&self, head: &RunHead) -> Result<(), RequestError> {
        for found in self.list(&head.argocd, Some(&head.platform)).await?.iter().skip(KEPT) {
            let what = "cannot remove an old record";
            delete::delete(&self.maps, &found.name, &DeleteParams::background(), what).await?;
        }
        Ok(())
    }
}

fn segment_name(head: &str, number: usize) -> String {
    format!("{head}.{number}")
}

fn metadata(head: &RunHead, name: &str, part: &str) -> ObjectMeta {
    let labels = [
        (MANAGED_BY.0, MANAGED_BY.1),
        (PLATFORM_LABEL, head.platform.as_str()),
        (ARGOCD_LABEL, &head.argocd),
        (RUN, &head.run),
        (PART, part),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels.into_iter().collect()),
        ..ObjectMeta::default()
    }
}
