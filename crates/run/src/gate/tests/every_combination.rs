//! Every combination of what the seven questions depend on, against the seven questions.

use tiphys_model::{Health, SyncStatus};

use super::{FINISHED, Look, by_alice, drifted, ours, revisions};
use crate::gate::Applied;
use crate::observation::{ConditionKind, Operation, OperationPhase};
use crate::time::Stamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Nobodys,
    Ours,
    Alices,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reconciled {
    Never,
    Earlier,
    SameSecond,
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drift {
    None,
    Tolerated,
    Untolerated,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hopeless {
    No,
    InvalidSpec,
    Deleting,
}

/// One combination.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a question of its own")]
struct Model {
    running: Whose,
    last: Whose,
    phase: OperationPhase,
    applied_ours: bool,
    reconciled: Reconciled,
    refreshed: bool,
    compared: bool,
    compared_ours: bool,
    drift: Drift,
    health: Health,
    lagging: bool,
    unmet: bool,
    hopeless: Hopeless,
}

impl Model {
    /// The seven questions, in their order, and that the Application is not beyond hope.
    fn is_done(self) -> bool {
        let ended = self.running == Whose::Nobodys
            && self.last == Whose::Ours
            && self.phase == OperationPhase::Succeeded;
        let assessed_after = match self.reconciled {
            Reconciled::Later => true,
            Reconciled::SameSecond => self.refreshed,
            Reconciled::Never | Reconciled::Earlier => false,
        };
        let synced = matches!(self.drift, Drift::None | Drift::Tolerated);
        ended
            && self.applied_ours
            && assessed_after
            && (self.compared && self.compared_ours && synced)
            && self.health == Health::Healthy
            && !self.lagging
            && !self.unmet
            && self.hopeless == Hopeless::No
    }

    fn look(self) -> Look {
        let revision = |ours: bool| revisions(if ours { "r1" } else { "r2" });
        let look = Look::well().tolerating(&["Secret/ca"]).with(|seen| {
            seen.operation = operation(self.running);
            seen.reconciled_at = match self.reconciled {
                Reconciled::Never => None,
                Reconciled::Earlier => Some(Stamp(FINISHED - 1)),
                Reconciled::SameSecond => Some(Stamp(FINISHED)),
                Reconciled::Later => Some(Stamp(FINISHED + 1)),
            };
            seen.compared_to_spec = self.compared;
            seen.revisions = revision(self.compared_ours);
            (seen.sync, seen.drifted) = match self.drift {
                Drift::None => (SyncStatus::Synced, Vec::new()),
                Drift::Tolerated => (SyncStatus::OutOfSync, vec![drifted("Secret/ca")]),
                Drift::Untolerated => (SyncStatus::OutOfSync, vec![drifted("Deployment/web")]),
                Drift::Unknown => (SyncStatus::Unknown, Vec::new()),
            };
            seen.health = self.health;
            seen.lagging.extend(self.lagging.then(|| "CephCluster/main".into()));
            seen.unmet.extend(self.unmet.then(|| "vault:8200 is closed".into()));
        });
        let look = match operation(self.last) {
            None => look.without_last(),
            Some(operation) => look.with_last(|last| {
                last.operation = operation;
                last.phase = self.phase;
                last.revisions = revision(self.applied_ours);
            }),
        };
        let look = if self.refreshed { look.refreshed() } else { look };
        match self.hopeless {
            Hopeless::No => look,
            Hopeless::InvalidSpec => look.condition(ConditionKind::InvalidSpec, "no such project"),
            Hopeless::Deleting => look.deleting(),
        }
    }
}

fn operation(whose: Whose) -> Option<Operation> {
    match whose {
        Whose::Nobodys => None,
        Whose::Ours => Some(ours()),
        Whose::Alices => Some(by_alice()),
    }
}

const BOTH: [bool; 2] = [false, true];
const WHOSE: [Whose; 3] = [Whose::Nobodys, Whose::Ours, Whose::Alices];
const PHASES: [OperationPhase; 5] = [
    OperationPhase::Running,
    OperationPhase::Terminating,
    OperationPhase::Succeeded,
    OperationPhase::Failed,
    OperationPhase::Error,
];
const RECONCILED: [Reconciled; 4] =
    [Reconciled::Never, Reconciled::Earlier, Reconciled::SameSecond, Reconciled::Later];
const DRIFT: [Drift; 4] = [Drift::None, Drift::Tolerated, Drift::Untolerated, Drift::Unknown];
const HEALTH: [Health; 6] = [
    Health::Healthy,
    Health::Progressing,
    Health::Degraded,
    Health::Suspended,
    Health::Missing,
    Health::Unknown,
];
const HOPELESS: [Hopeless; 3] = [Hopeless::No, Hopeless::InvalidSpec, Hopeless::Deleting];

/// A number as digits of changing bases: each one picks from a list.
struct Digits(usize);

impl Digits {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let digit = self.0 % from.len();
        self.0 /= from.len();
        from[digit]
    }
}

/// The combination with this number; none when all have had their turn.
fn model(number: usize) -> Option<Model> {
    let mut digits = Digits(number);
    let model = Model {
        running: digits.pick(&WHOSE),
        last: digits.pick(&WHOSE),
        phase: digits.pick(&PHASES),
        applied_ours: digits.pick(&BOTH),
        reconciled: digits.pick(&RECONCILED),
        refreshed: digits.pick(&BOTH),
        compared: digits.pick(&BOTH),
        compared_ours: digits.pick(&BOTH),
        drift: digits.pick(&DRIFT),
        health: digits.pick(&HEALTH),
        lagging: digits.pick(&BOTH),
        unmet: digits.pick(&BOTH),
        hopeless: digits.pick(&HOPELESS),
    };
    (digits.0 == 0).then_some(model)
}

#[test]
fn the_gate_opens_exactly_when_all_seven_questions_are_answered_with_yes() {
    let (mut combinations, mut done) = (0, 0);
    for model in (0..).map_while(model) {
        let opens = model.look().applied() == Applied::Done;
        assert_eq!(opens, model.is_done(), "{model:?}");
        combinations += 1;
        done += usize::from(opens);
    }
    // Three ways of being assessed after it (a later stamp, refreshed or not; the same second,
    // refreshed), and two of being in sync (no drift, or tolerated drift).
    assert_eq!((combinations, done), (829_440, 6));
}
