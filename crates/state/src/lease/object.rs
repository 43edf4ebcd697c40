//! The Lease as Kubernetes keeps it.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tiphys_cluster::names::MANAGED_BY;

use super::decide::{DURATION, Read};

/// What the holder is doing.
pub const ACTION: &str = "tiphys.dev/action";

pub(super) fn read(object: &Object) -> Read {
    let holder = object.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    Read {
        version: object.metadata.resource_version.clone().unwrap_or_default(),
        holder: holder.filter(|holder| !holder.is_empty()),
    }
}

pub(super) fn new(name: &str, identity: &str, action: &str) -> Object {
    let object = Object {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    taken(object, identity, action)
}

pub(super) fn taken(mut object: Object, identity: &str, action: &str) -> Object {
    let before = object.spec.take().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let now = MicroTime(Timestamp::now());
    object.spec = Some(LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        lease_transitions: Some(before + 1),
        ..LeaseSpec::default()
    });
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(ACTION.to_owned(), action.to_owned());
    object
}

pub(super) fn renewed(mut object: Object) -> Object {
    if let Some(spec) = &mut object.spec {
        spec.renew_time = Some(MicroTime(Timestamp::now()));
    }
    object
}
