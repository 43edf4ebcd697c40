//! How the nodes stand, and what of it Argo Workflows has not been told. No clock, no requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tiphys_run::Time;

/// What a node has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NodePhase {
    /// Argo Workflows ends a node that runs out of time only while it is called this.
    Pending,
    Succeeded,
    Failed,
}

/// What a node shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeReport {
    pub phase: NodePhase,
    pub message: String,
}

impl NodeReport {
    pub(super) fn is_final(&self) -> bool {
        self.phase != NodePhase::Pending
    }
}

/// How Argo Workflows calls a node.
pub(super) type NodeId = String;

/// A result is sent again if its node is still open after this time: Argo Workflows can lose it.
const RESEND: Duration = Duration::from_secs(10);
/// Between two reports that bring no result.
const PAUSE: Duration = Duration::from_secs(2);

/// What is known on both sides.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Of each app, as the run sees it.
    reports: BTreeMap<String, NodeReport>,
    /// The nodes that Argo Workflows waits for, with their apps.
    open: BTreeMap<NodeId, String>,
    sent: BTreeMap<NodeId, (NodeReport, Time)>,
    last_sent: Option<Time>,
    admitted: BTreeSet<String>,
}

impl Board {
    /// Takes note of the nodes that are open; which apps are admitted by that.
    pub(super) fn open(&mut self, open: BTreeMap<NodeId, String>) -> Vec<String> {
        self.sent.retain(|node, _| open.contains_key(node));
        let apps: BTreeSet<String> = open.values().cloned().collect();
        let new = apps.difference(&self.admitted).cloned().collect();
        self.admitted.extend(apps);
        self.open = open;
        new
    }

    pub(super) fn report(&mut self, app: String, report: NodeReport) {
        self.reports.insert(app, report);
    }

    /// A new workflow knows nothing.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
        self.sent.clear();
    }

    /// When something has to be sent, if nothing else happens.
    pub(super) fn wake_at(&self) -> Option<Time> {
        let due = self.open.iter().filter_map(|(node, app)| self.due_at(node, app));
        due.min()
    }

    fn due_at(&self, node: &NodeId, app: &str) -> Option<Time> {
        let wanted = self.reports.get(app)?;
        match self.sent.get(node) {
            Some((sent, at)) if sent == wanted => wanted.is_final().then(|| *at + RESEND),
            Some(_) | None if wanted.is_final() => Some(Time::START),
            Some(_) | None => Some(self.last_sent.map_or(Time::START, |last| last + PAUSE)),
        }
    }

    /// What has to be sent now.
    pub(super) fn due(&mut self, now: Time) -> BTreeMap<NodeId, NodeReport> {
        let is_due = |node: &NodeId, app: &str| self.due_at(node, app).is_some_and(|at| at <= now);
        let due: BTreeMap<NodeId, NodeReport> = self
            .open
            .iter()
            .filter(|(node, app)| is_due(node, app))
            .filter_map(|(node, app)| Some((node.clone(), self.reports.get(app)?.clone())))
            .collect();
        for (node, report) in &due {
            self.sent.insert(node.clone(), (report.clone(), now));
        }
        if !due.is_empty() {
            self.last_sent = Some(now);
        }
        due
    }

    /// It did not arrive, so it is due again.
    pub(super) fn lost(&mut self, due: &BTreeMap<NodeId, NodeReport>) {
        self.sent.retain(|node, _| !due.contains_key(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    fn open(nodes: &[(&str, &str)]) -> BTreeMap<NodeId, String> {
        nodes.iter().map(|(node, app)| ((*node).to_owned(), (*app).to_owned())).collect()
    }

    fn report(phase: NodePhase, message: &str) -> NodeReport {
        NodeReport { phase, message: message.to_owned() }
    }

    fn sent(board: &mut Board, seconds: u64) -> Vec<String> {
        let due = board.due(at(seconds));
        due.iter().map(|(node, report)| format!("{node}: {}", report.message)).collect()
    }

    #[test]
    fn an_app_is_admitted_once_by_the_first_node_that_is_open() {
        let mut board = Board::default();
        assert_eq!(board.open(open(&[("1", "a"), ("2", "b")])), ["a", "b"]);
        assert_eq!(board.open(open(&[("2", "b"), ("3", "c")])), ["c"]);
        board.begin_again();
        assert!(board.open(open(&[("9", "a")])).is_empty(), "what has started is not begun again");
    }

    #[test]
    fn nodes_are_told_what_is_new_and_only_that() {
        let mut board = Board::default();
        board.open(open(&[("1", "a"), ("2", "b")]));
        board.report("a".to_owned(), report(NodePhase::Pending, "syncing"));
        board.report("c".to_owned(), report(NodePhase::Succeeded, "applied"));
        assert_eq!(sent(&mut board, 0), ["1: syncing"], "b has nothing to say, c is not open");
        assert!(sent(&mut board, 9).is_empty());
        board.report("a".to_owned(), report(NodePhase::Succeeded, "applied"));
        assert_eq!(sent(&mut board, 9), ["1: applied"]);
        board.open(open(&[("2", "b"), ("3", "c")]));
        assert_eq!(sent(&mut board, 9), ["3: applied"], "it was done before its node was open");
    }

    #[test]
    fn news_that_are_no_results_wait_a_little() {
        let mut board = Board::default();
        board.open(open(&[("1", "a"), ("2", "b")]));
        board.report("a".to_owned(), report(NodePhase::Pending, "syncing"));
        assert_eq!(sent(&mut board, 0), ["1: syncing"]);
        board.report("a".to_owned(), report(NodePhase::Pending, "converging"));
        assert!(sent(&mut board, 1).is_empty());
        board.report("b".to_owned(), report(NodePhase::Failed, "no"));
        assert_eq!(sent(&mut board, 1), ["2: no"]);
        assert_eq!(board.wake_at(), Some(at(3)));
        assert_eq!(sent(&mut board, 3), ["1: converging"]);
    }

    #[test]
    fn a_result_that_was_lost_is_sent_again() {
        let mut board = Board::default();
        board.open(open(&[("1", "a")]));
        board.report("a".to_owned(), report(NodePhase::Succeeded, "applied"));
        assert_eq!(sent(&mut board, 0), ["1: applied"]);
        assert!(sent(&mut board, 9).is_empty(), "Argo Workflows takes its time");
        assert_eq!(sent(&mut board, 10), ["1: applied"], "it is still open");
        let due = board.due(at(20));
        board.lost(&due);
        assert_eq!(sent(&mut board, 20), ["1: applied"], "the request failed");
        board.open(BTreeMap::new());
        assert_eq!(board.wake_at(), None);
    }
}
