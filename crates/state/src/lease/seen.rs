//! Who holds a platform, as anybody sees it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tiphys_assess::status::LeaseSeen;
use tiphys_cluster::{RequestError, names};
use tiphys_model::PlatformName;

use super::object::ACTION;

/// Who holds a platform.
pub async fn seen(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Option<LeaseSeen>, RequestError> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), argocd);
    let name = names::of(platform);
    let what = format!("cannot read the Lease `{name}`");
    let lease = leases.get_opt(&name).await.map_err(RequestError::because(what))?;
    Ok(lease.and_then(|lease| lease_seen(&lease, Timestamp::now())))
}

/// Nobody, if it was given back. Our clock and the holder's may differ by what a renewal leaves
/// of the duration: twenty-five seconds.
fn lease_seen(lease: &Lease, now: Timestamp) -> Option<LeaseSeen> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
    let annotations = lease.metadata.annotations.as_ref();
    let action = annotations.and_then(|all| all.get(ACTION)).cloned().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    let expired = renewed.is_none_or(|renewed| {
        now.duration_since(renewed) > SignedDuration::from_secs(seconds.into())
    });
    Some(LeaseSeen { holder, action, expired })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": { "annotations": { "tiphys.dev/action": "deploy" } },
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 30, "renewTime": renewed,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_lease_is_held_until_it_is_given_back_or_runs_out() {
        let now: Timestamp = "2026-11-15T12:00:40Z".parse().unwrap();
        let seen = |holder, renewed| lease_seen(&lease(holder, renewed), now);
        let held = seen("me", "2026-11-15T12:00:20.000000Z").unwrap();
        assert_eq!((&*held.holder, &*held.action, held.expired), ("me", "deploy", false));
        assert!(seen("me", "2026-11-15T12:00:09.000000Z").unwrap().expired);
        assert_eq!(seen("", "2026-11-15T12:00:20.000000Z"), None);
    }
}
