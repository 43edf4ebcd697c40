//! A log explains itself: read back, line by line, it gives the view that was shown live.

use jiff::Timestamp;
use tiphys_run::{Action, EngineName, EventLine, LogLine, Recorder, RunView};
use tiphys_sim::{Recorded, Scenario, Simulation};

/// The log of what a run left behind; each driver begins with a first line of its own.
fn lines(simulation: &Simulation, action: Action, records: &[Recorded]) -> Vec<EventLine> {
    let mut lines = Vec::new();
    for epoch in records.chunk_by(|a, b| a.epoch == b.epoch) {
        let plan = simulation.plan().clone();
        let mut recorder = Recorder::new(plan, action, Timestamp::UNIX_EPOCH);
        lines.push(recorder.start("run".to_owned(), EngineName::Simulated, None));
        lines.extend(epoch.iter().filter_map(|r| recorder.record(r.elapsed, &r.event)));
    }
    lines
}

#[test]
fn the_view_of_a_log_that_was_read_back_is_the_live_one() {
    let mut ends = [0; 2];
    for seed in 0..300 {
        let scenario = Scenario::draw(seed);
        let mut simulation = scenario.simulation(&scenario.plan());
        let (mut live, mut read) = (RunView::default(), RunView::default());
        let mut seen = 0;
        for action in [Action::Deploy, Action::Teardown] {
            simulation.begin(action);
            simulation.run();
            for line in lines(&simulation, action, &simulation.records()[seen..]) {
                live.fold(&line);
                let written = serde_json::to_string(&line).unwrap();
                match serde_json::from_str(&written).unwrap() {
                    LogLine::Event(line) => read.fold(&line),
                    LogLine::Unknown { kind } => panic!("seed {seed}: {kind} is unknown"),
                }
                assert_eq!(live, read, "seed {seed}, after {written}");
            }
            seen = simulation.records().len();
            let verdict = live.finished.as_ref().map(|finished| finished.exit().code());
            ends[usize::from(verdict != Some(0))] += 1;
        }
    }
    assert!(ends.iter().all(|count| *count > 50), "good and bad ends: {ends:?}");
}
