//! What the cluster must be like, as RFC 3.2.4 lists it, and what it is made of.

use serde::Serialize;

use super::resources::Resources;
use super::{Check, NO_CLUSTER, Problem, Requirement, Section, Trouble, Version};

/// As old as the oldest kubectl that may be used.
const KUBERNETES: Version = Version::new(1, 28, 0);
/// Fewer cannot lose one and go on.
const WORKERS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    pub name: String,
    pub ready: bool,
    /// It takes pods that ask for nothing special: neither cordoned nor tainted.
    pub worker: bool,
    pub kubelet: String,
    pub runtime: String,
    pub capacity: Resources,
    pub allocatable: Resources,
}

/// The second output of Phase 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// The API server's version.
    pub version: String,
    pub nodes: Vec<Node>,
    pub capacity: Resources,
    pub allocatable: Resources,
}

impl Inventory {
    #[must_use]
    pub fn new(version: String, nodes: Vec<Node>) -> Self {
        let sum = |part: fn(&Node) -> Resources| {
            nodes.iter().map(part).fold(Resources::default(), Resources::plus)
        };
        let (capacity, allocatable) = (sum(|node| node.capacity), sum(|node| node.allocatable));
        Inventory { version, nodes, capacity, allocatable }
    }
}

fn requirement(name: &str, required: impl Into<String>) -> Requirement {
    Requirement::new(Section::Cluster, name, required)
}

fn api() -> Requirement {
    requirement("API server", "answers")
}

fn authentication() -> Requirement {
    requirement("authentication", "can create namespaces")
}

fn rights() -> Requirement {
    requirement("rights", "all that bootstrap needs")
}

fn nodes() -> Requirement {
    requirement("nodes", "Ready, at least one schedulable")
}

fn dns() -> Requirement {
    requirement("DNS", "CoreDNS is ready in kube-system")
}

fn version() -> Requirement {
    requirement("Kubernetes version", format!("{KUBERNETES} or newer"))
}

fn workers() -> Requirement {
    requirement("worker nodes", format!("at least {WORKERS}"))
}

fn resources(needed: Option<Resources>) -> Requirement {
    let needed = needed.map_or("nothing".to_owned(), |needed| needed.to_string());
    requirement("resources", needed)
}

/// All rows, for a cluster that cannot be reached or rejects the credentials.
#[must_use]
pub fn out_of_reach(problem: &Problem, needed: Option<Resources>) -> Vec<Check> {
    let skip = |requirement: Requirement| requirement.skipped(NO_CLUSTER);
    let (answer, login) = match problem.trouble {
        Trouble::Unreachable => (api().unknown(problem), skip(authentication())),
        Trouble::Rejected => (api().passed("answers"), authentication().unknown(problem)),
        // The kubeconfig: that is said where credentials are.
        Trouble::Missing => (skip(api()), skip(authentication())),
    };
    let rest = [version(), rights(), nodes(), dns(), workers(), resources(needed)];
    [answer, login].into_iter().chain(rest.map(skip)).collect()
}

/// The API server answered, with its version.
#[must_use]
pub fn reached(said: &str) -> [Check; 2] {
    let answered = api().passed(said);
    let judged = match Version::find(said) {
        Some(found) if found >= KUBERNETES => version().passed(said),
        _ => version().warned(said, format!("upgrade the cluster to {KUBERNETES} or newer")),
    };
    [answered, judged]
}

/// Whether the caller may create namespaces; `installs`: whether that is needed.
#[must_use]
pub fn judge_authentication(may: &Result<bool, Problem>, installs: bool) -> Check {
    match may {
        Ok(true) => authentication().passed("yes"),
        Ok(false) if !installs => authentication().passed("accepted; nothing to install"),
        Ok(false) => authentication().failed(
            Trouble::Rejected,
            "accepted, but cannot create namespaces",
            "use a kubeconfig with cluster-admin or an equivalent role",
        ),
        Err(problem) => authentication().unknown(problem),
    }
}

/// What is missing of the rights that were asked for.
#[must_use]
pub fn judge_rights(missing: &Result<Vec<String>, Problem>, asked: usize) -> Check {
    match missing {
        Ok(missing) if missing.is_empty() => rights().passed(format!("all {asked}")),
        Ok(missing) => {
            let found = format!("{} of {asked} are missing: {}", missing.len(), missing.join(", "));
            let next = "give the account cluster-admin, or a role with these rights";
            rights().failed(Trouble::Rejected, found, next)
        }
        Err(problem) => rights().unknown(problem),
    }
}

/// Where nothing is installed, no rights to install are needed.
#[must_use]
pub fn no_rights_needed(why: &str) -> Check {
    rights().skipped(why)
}

/// How many of CoreDNS's pods are ready, and how many there are.
#[must_use]
pub fn judge_dns(pods: &Result<(usize, usize), Problem>) -> Check {
    let next = "run `kubectl -n kube-system get pods -l k8s-app=kube-dns` to see them";
    match pods {
        Ok((_, 0)) => dns().failed(Trouble::Missing, "no pod with k8s-app=kube-dns", next),
        Ok((0, all)) => dns().failed(Trouble::Missing, format!("0 of {all} pods ready"), next),
        Ok((ready, all)) if ready < all => {
            dns().warned(format!("{ready} of {all} pods ready"), next)
        }
        Ok((ready, all)) => dns().passed(format!("{ready} of {all} pods ready")),
        Err(problem) => dns().unknown(problem),
    }
}

/// Nodes, worker nodes and resources.
#[must_use]
pub fn judge_nodes(found: &Result<Vec<Node>, Problem>, needed: Option<Resources>) -> Vec<Check> {
    let all = match found {
        Ok(all) => all,
        Err(problem) => {
            let why = "cannot list the nodes";
            let rest = [workers().skipped(why), resources(needed).skipped(why)];
            return [nodes().unknown(problem)].into_iter().chain(rest).collect();
        }
    };
    let usable: Vec<&Node> = all.iter().filter(|node| node.ready && node.worker).collect();
    let away: Vec<&str> =
        all.iter().filter(|node| !node.ready).map(|node| node.name.as_str()).collect();
    let next = "run `kubectl describe node` to see why; repair or remove nodes that are not Ready";
    let ready = if usable.is_empty() {
        let found = format!("none of {} is Ready and schedulable", all.len());
        nodes().failed(Trouble::Missing, found, next)
    } else if away.is_empty() {
        nodes().passed(format!("{} of {0} Ready", all.len()))
    } else {
        nodes().warned(format!("not Ready: {}", away.join(", ")), next)
    };
    let count = usable.len();
    let enough = if count >= WORKERS {
        workers().passed(count.to_string())
    } else {
        let next = "add nodes to survive the loss of one; fewer are fine for a trial";
        workers().warned(count.to_string(), next)
    };
    let given = usable.iter().map(|node| node.allocatable);
    let given = given.fold(Resources::default(), Resources::plus);
    let room = if given.covers(needed.unwrap_or_default()) {
        resources(needed).passed(format!("{given} allocatable"))
    } else {
        let next = "add more or larger nodes; otherwise pods of the primitives stay Pending";
        resources(needed).warned(format!("{given} allocatable"), next)
    };
    vec![ready, enough, room]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Outcome;
    use crate::preflight::resources::request;
    use crate::preflight::resources::tests::needed_by_all;

    fn node(name: &str, ready: bool, worker: bool) -> Node {
        let capacity = request(2_000, 2_048, 110);
        Node {
            name: name.to_owned(),
            ready,
            worker,
            kubelet: "v1.34.4".to_owned(),
            runtime: "containerd://1.6.20".to_owned(),
            capacity,
            allocatable: capacity,
        }
    }

    #[test]
    fn nodes_workers_and_resources() {
        use Outcome::{Fail, Pass, Warning};
        let (a, b, c) = (node("a", true, true), node("b", true, true), node("c", true, true));
        let (down, master) = (node("d", false, true), node("m", true, false));
        let (single, high) = (needed_by_all(false), needed_by_all(true));
        let missing = Fail(Trouble::Missing);
        let cases = [
            (vec![a.clone(), b.clone(), c.clone()], single, [Pass, Pass, Pass]),
            (vec![a.clone(), b.clone(), c.clone()], high, [Pass, Pass, Pass]),
            (vec![a.clone(), master.clone()], high, [Pass, Warning, Warning]),
            (vec![a.clone()], single, [Pass, Warning, Pass]),
            (vec![a, b, c, down.clone()], single, [Warning, Pass, Pass]),
            (vec![down], single, [missing, Warning, Warning]),
            (vec![master], single, [missing, Warning, Warning]),
            (vec![], None, [missing, Warning, Pass]),
        ];
        for (nodes, needed, expected) in cases {
            let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
            let checks = judge_nodes(&Ok(nodes), needed);
            let outcomes: Vec<Outcome> = checks.iter().map(|check| check.outcome).collect();
            assert_eq!(outcomes, expected, "{names:?} {needed:?}");
        }
    }

    #[test]
    fn coredns_must_be_ready() {
        let judged = |ready, all| judge_dns(&Ok((ready, all))).outcome;
        assert_eq!(judged(2, 2), Outcome::Pass);
        assert_eq!(judged(1, 2), Outcome::Warning);
        assert_eq!(judged(0, 2), Outcome::Fail(Trouble::Missing));
        assert_eq!(judged(0, 0), Outcome::Fail(Trouble::Missing));
    }

    #[test]
    fn an_old_cluster_is_a_warning() {
        let judged = |said| reached(said)[1].outcome;
        assert_eq!(judged("v1.28.0"), Outcome::Pass);
        assert_eq!(judged("v1.27.16-eks-1"), Outcome::Warning);
        assert_eq!(judged("?"), Outcome::Warning);
    }

    #[test]
    fn missing_rights_are_named_and_end_with_4() {
        let missing = vec!["create namespaces".to_owned()];
        let check = judge_rights(&Ok(missing), 40);
        assert_eq!(check.outcome, Outcome::Fail(Trouble::Rejected));
        assert_eq!(check.found, "1 of 40 are missing: create namespaces");
        assert_eq!(judge_authentication(&Ok(false), true).outcome, check.outcome);
        assert_eq!(judge_authentication(&Ok(false), false).outcome, Outcome::Pass);
    }

    #[test]
    fn of_a_cluster_out_of_reach_one_row_fails() {
        let cases = [
            (Trouble::Unreachable, Some("API server")),
            (Trouble::Rejected, Some("authentication")),
            (Trouble::Missing, None),
        ];
        for (trouble, name) in cases {
            let problem = Problem { trouble, why: "refused".to_owned(), next: None };
            let checks = out_of_reach(&problem, None);
            assert_eq!(checks.len(), 8);
            let failed = checks.iter().find(|check| check.outcome == Outcome::Fail(trouble));
            assert_eq!(failed.map(|check| check.name.as_str()), name);
        }
    }
}
