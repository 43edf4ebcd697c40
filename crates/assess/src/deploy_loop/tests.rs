//! Each reason on its own, and laws over random histories of a platform.

use proptest::prelude::*;
use tiphys_model::{AllowWindow, Cron};

use super::*;

fn at(seconds: i64) -> Timestamp {
    // A Thursday, 12:00.
    Timestamp::from_second(1_795_089_600 + seconds).unwrap()
}

fn automatic() -> DeployPolicy {
    DeployPolicy { mode: DeployMode::Automatic, ..DeployPolicy::default() }
}

fn tried(revision: &str, count: u32) -> Attempts {
    Attempts { revision: revision.to_owned(), count, workflow: "w".to_owned(), at: at(0) }
}

#[test]
fn each_reason_has_its_place() {
    let (policy, git) = (automatic(), Git::At("b".to_owned()));
    let look = Look {
        now: at(0),
        policy: Some(&policy),
        git: &git,
        deployed: Some("a"),
        paused: false,
        busy: None,
        attempts: None,
        ended: None,
    };
    let revision = || "b".to_owned();
    let deploy = |attempt| Next::Deploy { revision: revision(), attempt };
    assert_eq!(Next::of(look), deploy(1));
    assert_eq!(Next::of(Look { deployed: None, ..look }), deploy(1), "the last one failed");
    assert_eq!(Next::of(Look { policy: None, ..look }), Next::NeverDeployed);
    let manual = DeployPolicy::default();
    assert_eq!(Next::of(Look { policy: Some(&manual), ..look }), Next::Manual);
    let unknown = Git::Unknown("no network".to_owned());
    let why = "no network".to_owned();
    assert_eq!(Next::of(Look { git: &unknown, ..look }), Next::Unknown { why });
    let there = Look { deployed: Some("b"), paused: true, busy: Some("x"), ..look };
    assert_eq!(Next::of(there), Next::UpToDate { revision: revision() });
    let paused = Look { paused: true, busy: Some("x"), ..look };
    assert_eq!(Next::of(paused), Next::Paused { revision: revision() });
    let busy = Next::Busy { revision: revision(), by: "x".to_owned() };
    assert_eq!(Next::of(Look { busy: Some("x"), ..look }), busy);

    let shut = AllowWindow::new(Cron::new("0 22 * * *", None).unwrap(), Duration::from_secs(60));
    let shut = DeployPolicy { allow: vec![shut], ..automatic() };
    let until = Some(at(10 * 3600));
    let closed = Next::Closed { revision: revision(), until };
    assert_eq!(Next::of(Look { policy: Some(&shut), ..look }), closed);
}

#[test]
fn a_revision_that_fails_is_tried_three_times_with_pauses() {
    let (policy, git) = (automatic(), Git::At("b".to_owned()));
    let next = |attempts: &Attempts, ended, now| {
        let (attempts, ended, now) = (Some(attempts), Some(at(ended)), at(now));
        let (policy, git) = (Some(&policy), &git);
        let look =
            Look { now, policy, git, deployed: None, paused: false, busy: None, attempts, ended };
        Next::of(look)
    };
    let wait = |attempts, until| Next::BackOff { revision: "b".into(), attempts, until: at(until) };
    let deploy = |attempt| Next::Deploy { revision: "b".into(), attempt };
    assert_eq!(next(&tried("b", 1), 100, 159), wait(1, 160));
    assert_eq!(next(&tried("b", 1), 100, 160), deploy(2));
    assert_eq!(next(&tried("b", 2), 200, 499), wait(2, 500));
    assert_eq!(next(&tried("b", 2), 200, 500), deploy(3));
    let gave_up = Next::GaveUp { revision: "b".into(), attempts: 3 };
    assert_eq!(next(&tried("b", 3), 300, 1_000_000), gave_up);
    assert_eq!(next(&tried("a", 3), 300, 301), deploy(1), "a new revision is tried at once");
}

/// A platform in a cluster, and the loop beside it.
#[derive(Debug, Default)]
struct World {
    now: i64,
    git: u32,
    deployed: Option<u32>,
    paused: bool,
    attempts: Option<Attempts>,
    /// Which revision is being deployed.
    run: Option<u32>,
    ended: Option<Timestamp>,
    /// How often each revision was tried by the loop.
    tried: std::collections::BTreeMap<u32, u32>,
}

#[derive(Debug, Clone, Copy)]
enum Story {
    Push,
    Pause,
    Resume,
    RunEnds {
        well: bool,
    },
    PersonDeploys,
    /// The loop dies after it has submitted a workflow, and before it has noted that.
    LoopDies,
    Time {
        seconds: u16,
    },
}

fn stories() -> impl Strategy<Value = Vec<Story>> {
    let story = prop_oneof![
        2 => Just(Story::Push),
        1 => Just(Story::Pause),
        2 => Just(Story::Resume),
        4 => any::<bool>().prop_map(|well| Story::RunEnds { well }),
        1 => Just(Story::PersonDeploys),
        1 => Just(Story::LoopDies),
        4 => (0_u16..400).prop_map(|seconds| Story::Time { seconds }),
    ];
    prop::collection::vec(story, 0..60)
}

impl World {
    fn tell(&mut self, story: Story) {
        match story {
            Story::Push => self.git += 1,
            Story::Pause => self.paused = true,
            Story::Resume => self.paused = false,
            Story::Time { seconds } => self.now += i64::from(seconds),
            Story::PersonDeploys => {
                if self.run.is_none() {
                    self.begin();
                }
            }
            Story::LoopDies => self.look(false),
            Story::RunEnds { well } => {
                if let Some(revision) = self.run.take() {
                    self.ended = Some(at(self.now));
                    self.deployed = well.then_some(revision);
                }
            }
        }
    }

    /// A run deploys what Git has by then.
    fn begin(&mut self) {
        self.run = Some(self.git);
        if self.deployed != Some(self.git) {
            self.deployed = None;
        }
    }

    /// One look of the loop, and what it does. Workflows have names of revision and attempt, so one
    /// that was submitted and not noted is found when it is submitted again.
    fn look(&mut self, notes: bool) {
        let (policy, git) = (automatic(), Git::At(self.git.to_string()));
        let deployed = self.deployed.map(|revision| revision.to_string());
        let next = Next::of(Look {
            now: at(self.now),
            policy: Some(&policy),
            git: &git,
            deployed: deployed.as_deref(),
            paused: self.paused,
            busy: self.run.is_some().then_some("a run"),
            attempts: self.attempts.as_ref(),
            ended: self.ended,
        });
        let Next::Deploy { revision, attempt } = next else { return };
        assert!(!self.paused && self.run.is_none() && self.deployed != Some(self.git));
        let tried = self.tried.entry(self.git).or_default();
        let is_new = attempt > *tried;
        *tried = (*tried).max(attempt);
        assert!(*tried <= MOST_ATTEMPTS, "{self:?}");
        if notes {
            let workflow = String::new();
            let at = at(self.now);
            self.attempts = Some(Attempts { revision, count: attempt, workflow, at });
        }
        if is_new {
            self.begin();
        }
    }
}

proptest! {
    /// Nothing is started while it must not be, no revision is tried more often than allowed, and once
    /// nothing goes wrong any more, the newest revision is deployed or was given up.
    #[test]
    fn the_newest_revision_is_deployed_in_the_end(stories in stories()) {
        let mut world = World::default();
        for story in stories {
            world.tell(story);
            world.look(true);
        }
        world.tell(Story::Resume);
        for _ in 0..20 {
            world.tell(Story::RunEnds { well: true });
            world.tell(Story::Time { seconds: 399 });
            world.look(true);
        }
        let gave_up = world.tried.get(&world.git) == Some(&MOST_ATTEMPTS);
        prop_assert!(world.deployed == Some(world.git) || gave_up, "{world:?}");
    }
}

#[test]
fn every_reason_is_said_in_words() {
    let revision = || "9ab2edec4cac3f5c367bd04f9212110f75a0c3ea".to_owned();
    let until = at(0);
    let all = [
        Next::NeverDeployed,
        Next::Manual,
        Next::Unknown { why: "ComparisonError: no route to host".to_owned() },
        Next::UpToDate { revision: revision() },
        Next::Paused { revision: revision() },
        Next::Busy { revision: revision(), by: "deploy by tiphys on pod-7".to_owned() },
        Next::GaveUp { revision: revision(), attempts: 3 },
        Next::BackOff { revision: revision(), attempts: 1, until },
        Next::Closed { revision: revision(), until: Some(until) },
        Next::Closed { revision: revision(), until: None },
        Next::Deploy { revision: revision(), attempt: 1 },
        Next::Deploy { revision: "1.2.3".to_owned(), attempt: 2 },
    ];
    let said: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "waiting for the first deployment, which a person starts",
            "off: the deployed platform file does not say `deploy: automatic`",
            "cannot tell what Git has: ComparisonError: no route to host",
            "9ab2edec4cac is deployed",
            "paused; 9ab2edec4cac is not deployed",
            "9ab2edec4cac is not deployed yet; in progress: deploy by tiphys on pod-7",
            "gave up on 9ab2edec4cac after 3 attempts; the next commit is tried at once",
            "attempt 1 at 9ab2edec4cac ended without success; next attempt at 2026-11-19T12:00:00Z",
            "9ab2edec4cac is not deployed; the next window opens at 2026-11-19T12:00:00Z",
            "9ab2edec4cac is not deployed; no window opens",
            "deploying 9ab2edec4cac",
            "deploying 1.2.3, attempt 2 of 3",
        ],
    );
    for next in all {
        let text = serde_json::to_string(&next).unwrap();
        assert_eq!(serde_json::from_str::<Next>(&text).unwrap(), next, "{text}");
    }
}

#[test]
fn news_are_revisions_that_come_while_the_loop_looks() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let up_to_date = |revision: &str| Next::UpToDate { revision: revision.to_owned() };
    let first = SeenByLoop::new(at(1), "us", up_to_date("a"), None);
    assert_eq!(first.news, None, "nobody knows since when Git has it");
    let same = SeenByLoop::new(at(2), "us", up_to_date("a"), Some(&first));
    assert_eq!(same.news, None);
    let busy = Next::Busy { revision: "b".to_owned(), by: "run".to_owned() };
    let news = SeenByLoop::new(at(3), "us", busy, Some(&same));
    let expected = Some(News { revision: "b".to_owned(), at: at(3) });
    assert_eq!(news.news, expected);
    let unknown = Next::Unknown { why: "the repository is away".to_owned() };
    let unknown = SeenByLoop::new(at(4), "us", unknown, Some(&news));
    assert_eq!(unknown.news, expected, "it is still the newest");
    let again = SeenByLoop::new(at(5), "others", up_to_date("b"), Some(&unknown));
    assert_eq!(again.news, expected);
}
