//! Who a run is, for people who find the platform taken, and for who looks for the run.

use std::fs;
use std::process;

use jiff::Timestamp;

const BEGINNING: &str = "tiphys on ";

/// The host, the process, and since when. In a pod, the host is the pod.
pub(crate) fn identity() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "some machine" } else { host.trim() };
    format!("{BEGINNING}{host}, pid {}, since {:.0}", process::id(), Timestamp::now())
}

/// The host that an identity names.
pub(crate) fn host(identity: &str) -> Option<&str> {
    identity.strip_prefix(BEGINNING)?.split(", pid ").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_names_its_host() {
        assert_eq!(host("tiphys on pod-7, pid 1, since 2026-11-18T12:00:00Z"), Some("pod-7"));
        assert_eq!(host("somebody"), None);
        let own = identity();
        assert!(host(&own).is_some_and(|host| !host.is_empty()), "{own}");
    }
}
