//! What Argo Workflows needs for a platform that wants a node for each app. Nodes work without it, but
//! slowly, so it is a warning.

use tiphys_model::bootstrap::REQUEUE_TIME;

use super::{Check, NO_CLUSTER, Problem, Requirement, Section, Trouble};

/// What was seen of a workflow controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// `NAMESPACE/NAME` of its pod.
    pub pod: String,
    /// What the variable of [`REQUEUE_TIME`] is set to.
    pub requeue: Option<String>,
    /// Whether it may `patch workflowtasksets/status`, or why nobody knows.
    pub may_tidy: Result<bool, Problem>,
}

fn nodes() -> Requirement {
    let (requeue, time) = REQUEUE_TIME;
    let required = format!("{requeue}={time}, patch workflowtasksets/status");
    Requirement::new(Section::Cluster, "Argo Workflows for nodes", required)
}

/// The row for a cluster that cannot be reached.
#[must_use]
pub fn not_asked() -> Check {
    nodes().skipped(NO_CLUSTER)
}

/// The row for a platform that installs its Argo Workflows.
#[must_use]
pub fn installed() -> Check {
    nodes().passed("installed by `tiphys bootstrap`")
}

/// Of several controllers, nobody knows which one is going to do the work: what one lacks, counts.
#[must_use]
pub fn judge(found: &Result<Vec<Controller>, Problem>) -> Check {
    let controllers = match found {
        Ok(controllers) => controllers,
        Err(problem) => return nodes().skipped(&problem.why),
    };
    if controllers.is_empty() {
        let next = "install Argo Workflows 3.7 or 4.0, or set `spec.workflows` to `single`";
        return nodes().failed(Trouble::Missing, "no workflow controller is running", next);
    }
    let lacks: Vec<String> = controllers.iter().flat_map(lacks).collect();
    if lacks.is_empty() {
        let pods = controllers.iter().map(|controller| &*controller.pod);
        return nodes().passed(pods.collect::<Vec<_>>().join(", "));
    }
    let (requeue, time) = REQUEUE_TIME;
    nodes().warned(
        lacks.join("; "),
        format!(
            "set `{requeue}={time}` for the workflow controller, and let it `patch \
             workflowtasksets/status`: otherwise each app waits 10 to 20 s for the one before"
        ),
    )
}

fn lacks(controller: &Controller) -> Vec<String> {
    let Controller { pod, requeue, may_tidy } = controller;
    let mut lacks = Vec::new();
    let (variable, time) = REQUEUE_TIME;
    match requeue.as_deref() {
        Some(set) if set == time => {}
        Some(other) => lacks.push(format!("{pod} has {variable}={other}")),
        None => lacks.push(format!("{pod} has no {variable}")),
    }
    match may_tidy {
        Ok(true) => {}
        Ok(false) => lacks.push(format!("{pod} may not patch workflowtasksets/status")),
        Err(problem) => lacks.push(format!("cannot check the rights of {pod}: {}", problem.why)),
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Outcome;

    #[test]
    fn what_makes_nodes_slow_is_a_warning_and_no_controller_a_failure() {
        let problem = || Problem { trouble: Trouble::Rejected, why: "denied".into(), next: None };
        let controller = |requeue: Option<&str>, may_tidy| Controller {
            pod: "argo/c".to_owned(),
            requeue: requeue.map(str::to_owned),
            may_tidy,
        };
        let judged = |found: Vec<Controller>| {
            let check = judge(&Ok(found));
            (check.outcome, check.found)
        };
        let warned = |found: &str| (Outcome::Warning, found.to_owned());
        let well = controller(Some("1s"), Ok(true));
        assert_eq!(judged(vec![well.clone()]), (Outcome::Pass, "argo/c".to_owned()));
        assert_eq!(
            judged(vec![well, controller(None, Ok(false))]),
            warned(
                "argo/c has no DEFAULT_REQUEUE_TIME; argo/c may not patch workflowtasksets/status"
            )
        );
        assert_eq!(
            judged(vec![controller(Some("5s"), Err(problem()))]),
            warned("argo/c has DEFAULT_REQUEUE_TIME=5s; cannot check the rights of argo/c: denied")
        );
        assert_eq!(judged(Vec::new()).0, Outcome::Fail(Trouble::Missing));
        assert_eq!(judge(&Err(problem())).outcome, Outcome::Skipped);
    }
}
