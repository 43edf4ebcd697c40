//! Apps are to be held while Argo CD begins syncs of its own at any moment, and others write to
//! the project. Whatever happens, success means that nothing is under way and nothing will be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tiphys_run::Time;

use super::super::decide::{Change, Holding, Next, Seen, Why, writes_again};

/// What happens besides us, each at some millisecond.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// Argo CD wants to sync one of our apps by itself.
    Begin { app: usize, lasts: u64, heeds_termination: bool },
    /// Another writer holds, or lets go of, an app that is not ours.
    Foreign { app: usize, holds: bool },
    /// Another writer changes something else in the project.
    Note,
}

#[derive(Debug, Clone)]
struct Story {
    happenings: Vec<(u64, Happening)>,
    /// How long our requests take, in turn.
    delays: Vec<u64>,
    /// How old the project is that the controller goes by, in turn.
    lags: Vec<u64>,
    /// Apps of ours that an earlier run holds.
    held_before: BTreeSet<String>,
}

/// A controller sees a new window before we look again.
const MAX_LAG: u64 = 500;
const OURS: [&str; 3] = ["a", "b", "c"];
const OTHERS: [&str; 2] = ["x", "y"];

fn stories() -> impl Strategy<Value = Story> {
    // Many at the beginning, some while operations are awaited and terminated.
    let when = || prop_oneof![6 => 0..3_000_u64, 2 => 0..20_000_u64, 1 => 0..300_000_u64];
    let lasts = prop_oneof![3 => 0..2_000_u64, 1 => 0..200_000_u64];
    let begin = (0..OURS.len(), lasts, prop::bool::weighted(0.95)).prop_map(
        |(app, lasts, heeds_termination)| Happening::Begin { app, lasts, heeds_termination },
    );
    let foreign =
        (0..OTHERS.len(), any::<bool>()).prop_map(|(app, holds)| Happening::Foreign { app, holds });
    let happening = prop_oneof![4 => begin, 2 => foreign, 1 => Just(Happening::Note)];
    let held = prop::sample::subsequence(OURS.to_vec(), 0..=OURS.len());
    (vec((when(), happening), 0..40), vec(0..400_u64, 1..20), vec(0..MAX_LAG, 1..10), held)
        .prop_map(|(mut happenings, delays, lags, held)| {
            happenings.sort_by_key(|(at, _)| *at);
            let held_before = held.into_iter().map(str::to_owned).collect();
            Story { happenings, delays, lags, held_before }
        })
}

#[derive(Debug, Clone)]
struct Operation {
    left: u64,
    heeds_termination: bool,
}

/// A cluster, and what should be in it.
struct World {
    now: u64,
    story: Story,
    requests: usize,
    begun: usize,
    version: u64,
    /// Who is held, since when: the newest last.
    windows: Vec<(u64, BTreeSet<String>)>,
    operations: BTreeMap<String, Operation>,
    /// What others have done, for comparison.
    others: BTreeSet<String>,
}

impl World {
    fn new(story: Story) -> Self {
        let windows = vec![(0, story.held_before.clone())];
        World {
            now: 0,
            story,
            requests: 0,
            begun: 0,
            version: 0,
            windows,
            operations: BTreeMap::new(),
            others: BTreeSet::new(),
        }
    }

    fn held(&self) -> &BTreeSet<String> {
        &self.windows.last().unwrap().1
    }

    /// Who was held some time ago: what a controller goes by.
    fn held_at(&self, when: u64) -> &BTreeSet<String> {
        let seen = self.windows.iter().rev().find(|(since, _)| *since <= when);
        &seen.unwrap_or(&self.windows[0]).1
    }

    fn set(&mut self, held: BTreeSet<String>) {
        self.version += 1;
        self.windows.push((self.now, held));
    }

    /// Lets time pass, from one happening to the next.
    fn pass(&mut self, millis: u64) {
        let end = self.now + millis;
        loop {
            let next = self.story.happenings.first().map_or(end, |(at, _)| end.min(*at));
            let step = next.saturating_sub(self.now);
            self.now += step;
            let frozen = self.held().clone();
            for (app, operation) in &mut self.operations {
                // A window freezes what is under way.
                if !frozen.contains(app) {
                    operation.left = operation.left.saturating_sub(step);
                }
            }
            self.operations.retain(|_, operation| operation.left > 0);
            while self.story.happenings.first().is_some_and(|(at, _)| *at <= self.now) {
                let (_, happening) = self.story.happenings.remove(0);
                self.happen(happening);
            }
            if self.now == end {
                return;
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Begin { app, lasts, heeds_termination } => {
                let lag = self.story.lags[self.begun % self.story.lags.len()];
                let app = OURS[app].to_owned();
                if !self.held_at(self.now.saturating_sub(lag)).contains(&app) {
                    self.begun += 1;
                    let operation = Operation { left: lasts + 1, heeds_termination };
                    self.operations.entry(app).or_insert(operation);
                }
            }
            Happening::Foreign { app, holds } => {
                let mut held = self.held().clone();
                let app = OTHERS[app].to_owned();
                if holds {
                    self.others.insert(app.clone());
                    held.insert(app);
                } else {
                    self.others.remove(&app);
                    held.remove(&app);
                }
                self.set(held);
            }
            // A merge patch leaves the rest of the project as it is.
            Happening::Note => self.version += 1,
        }
    }

    /// A request of ours takes its time, and takes effect in the middle of it.
    fn ask<T>(&mut self, effect: impl FnOnce(&mut World) -> T) -> T {
        let delay = self.story.delays[self.requests % self.story.delays.len()];
        self.requests += 1;
        self.pass(delay / 2);
        let answer = effect(self);
        self.pass(delay - delay / 2);
        answer
    }

    /// `None`: too many conflicts.
    fn write(&mut self, change: &Change) -> Option<BTreeSet<String>> {
        for attempt in 1.. {
            let (version, held) = self.ask(|world| (world.version, world.held().clone()));
            let missing = change.missing(&held);
            if missing.is_empty() {
                return Some(missing);
            }
            let written = self.ask(|world| {
                let fits = world.version == version;
                if fits {
                    world.set(change.of(&held));
                }
                fits
            });
            if written {
                return Some(missing);
            }
            if !writes_again(attempt) {
                return None;
            }
        }
        unreachable!("the loop ends by returning")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Held,
    GaveUp(Why),
    Conflicts,
}

/// Holds the apps as `hold_when_idle` does; how it ended, and in how many steps.
fn play(world: &mut World, ours: &BTreeSet<String>) -> (End, usize) {
    let (mut holding, mut next) = Holding::begin(Time::from_millis(world.now));
    for step in 1.. {
        let seen = match next {
            Next::Look { after } => look(world, after),
            Next::Terminate { app, look_after } => {
                world.ask(|world| {
                    if world.operations.get(&app).is_some_and(|o| o.heeds_termination) {
                        world.operations.remove(&app);
                    }
                });
                look(world, look_after)
            }
            Next::Hold => match world.write(&Change::Hold(ours.clone())) {
                Some(added) => Seen::Held { added },
                None => return (End::Conflicts, step),
            },
            Next::Release(added) => match world.write(&Change::Release(added)) {
                Some(_) => Seen::Released,
                None => return (End::Conflicts, step),
            },
            Next::Done => return (End::Held, step),
            Next::GiveUp(why) => return (End::GaveUp(why), step),
        };
        next = holding.decide(Time::from_millis(world.now), seen);
    }
    unreachable!("the loop ends by returning")
}

fn look(world: &mut World, after: Duration) -> Seen {
    world.pass(u64::try_from(after.as_millis()).unwrap());
    Seen::Automated(world.ask(|world| world.operations.keys().next().cloned()))
}

fn ours() -> BTreeSet<String> {
    OURS.iter().map(|app| (*app).to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn apps_that_are_held_have_nothing_under_way_and_others_lose_nothing(story in stories()) {
        let mut world = World::new(story);
        let (end, steps) = play(&mut world, &ours());
        // One look a second until all is given up on, and ten attempts of four steps.
        prop_assert!(steps <= 241 + 40 + 2, "{steps} steps");
        let mut expected = world.others.clone();
        match &end {
            End::Held => {
                expected.extend(ours());
                prop_assert!(world.operations.is_empty(), "under way: {:?}", world.operations);
            }
            End::GaveUp(_) => expected.extend(world.story.held_before.clone()),
            End::Conflicts => {
                let changed = world.held() - &ours();
                prop_assert_eq!(changed, world.others.clone());
                return Ok(());
            }
        }
        prop_assert_eq!(world.held(), &expected, "{:?}", end);
        if end == End::Held {
            world.pass(400_000);
            prop_assert!(world.operations.is_empty(), "began later: {:?}", world.operations);
        }
    }
}

#[test]
fn the_model_reaches_every_end() {
    let calm = Story {
        happenings: Vec::new(),
        delays: vec![20],
        lags: vec![0],
        held_before: BTreeSet::new(),
    };
    let begin =
        |at, lasts, heeds_termination| (at, Happening::Begin { app: 0, lasts, heeds_termination });
    let play = |happenings, lags| {
        let story = Story { happenings, lags, ..calm.clone() };
        play(&mut World::new(story), &ours())
    };
    assert_eq!(play(Vec::new(), vec![0]), (End::Held, 4));
    let frozen = play(vec![begin(0, 1_000_000, true)], vec![0]);
    assert_eq!(frozen.0, End::Held, "after it was terminated");
    let never = Why::NeverEnds { app: "a".to_owned() };
    assert_eq!(play(vec![begin(0, 1_000_000, false)], vec![0]).0, End::GaveUp(never));
    let always = (0..20_000).map(|number| begin(number * 20, 5, true)).collect();
    assert_eq!(play(always, vec![60]).0, End::GaveUp(Why::AlwaysLate));
    let conflicts = (0..4_000).map(|number| (number * 5, Happening::Note)).collect();
    assert_eq!(play(conflicts, vec![0]).0, End::Conflicts);
}
