//! Whether a run still holds its platform, from what was read of the Lease and when.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tiphys_run::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The Lease has not been read yet.
    Unknown,
    Alive,
    /// Another run has taken the Lease, or this one gave it up or died.
    Gone,
}

/// A holder is dead when the Lease did not change for its whole duration: clocks are not compared.
#[derive(Debug)]
pub(super) struct Liveness {
    epoch: u64,
    /// The version that was read last, and when it was read first.
    last: Option<(String, Time)>,
}

impl Liveness {
    pub(super) fn new(epoch: u64) -> Self {
        Liveness { epoch, last: None }
    }

    pub(super) fn judge(&mut self, now: Time, lease: Option<&Lease>) -> Verdict {
        let Some((lease, spec)) = lease.and_then(|lease| Some((lease, lease.spec.as_ref()?)))
        else {
            return Verdict::Gone;
        };
        let epoch = spec.lease_transitions.and_then(|epoch| u64::try_from(epoch).ok());
        let held = spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
        if epoch != Some(self.epoch) || !held {
            return Verdict::Gone;
        }
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let since = match &self.last {
            Some((last, since)) if *last == version => *since,
            Some(_) | None => {
                self.last = Some((version, now));
                now
            }
        };
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = Duration::from_secs(seconds.unwrap_or_default());
        if now - since < duration { Verdict::Alive } else { Verdict::Gone }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(version: u64, holder: &str, epoch: u64) -> Lease {
        let spec = json!({
            "holderIdentity": holder, "leaseTransitions": epoch, "leaseDurationSeconds": 30,
        });
        let metadata = json!({ "resourceVersion": version.to_string() });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    #[test]
    fn a_run_is_alive_as_long_as_it_renews_its_lease() {
        let mut liveness = Liveness::new(3);
        for (second, version) in [(0, 1), (29, 1), (30, 2), (59, 2)] {
            let read = lease(version, "pod", 3);
            assert_eq!(liveness.judge(at(second), Some(&read)), Verdict::Alive, "{second}");
        }
        assert_eq!(liveness.judge(at(60), Some(&lease(2, "pod", 3))), Verdict::Gone);
        assert_eq!(
            liveness.judge(at(61), Some(&lease(3, "pod", 3))),
            Verdict::Alive,
            "it was slow"
        );
    }

    #[test]
    fn a_run_is_gone_when_the_lease_is_anothers_or_nobodys() {
        let judge = |lease: Option<&Lease>| Liveness::new(3).judge(at(0), lease);
        assert_eq!(judge(Some(&lease(1, "pod", 4))), Verdict::Gone, "a newer run");
        assert_eq!(judge(Some(&lease(1, "", 3))), Verdict::Gone, "given up");
        assert_eq!(judge(None), Verdict::Gone, "deleted");
    }
}
