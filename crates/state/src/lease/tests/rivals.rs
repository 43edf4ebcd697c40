//! Several runs want one Lease, on a network that delays and loses, and some of them stop for a
//! while. Whatever happens, no two may act at the same moment.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tiphys_run::Time;

use super::super::decide::{DURATION, Next, Owner, RENEWAL, Read, Waiting, may_send, owner};

const TICK: u64 = 100;
const END: u64 = 240_000;

/// What happens to the requests of a run, and when it sleeps.
#[derive(Debug, Clone)]
struct Fate {
    /// Milliseconds to the server and back, in turn.
    delays: Vec<(u64, u64)>,
    /// In turn: whether the request, or its answer, is lost.
    losses: Vec<(bool, bool)>,
    /// When it does nothing: each from the first to the second.
    stops: Vec<(u64, u64)>,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    // Mostly quick, and now and then slower than a renewal.
    let way = || prop_oneof![3 => 0..200_u64, 1 => 0..8_000_u64];
    let delay = (way(), way());
    let loss = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    let stop = (0..END, 0..60_000_u64).prop_map(|(from, length)| (from, from + length));
    let fate = (vec(delay, 1..40), vec(loss, 1..40), vec(stop, 1..4))
        .prop_map(|(delays, losses, stops)| Fate { delays, losses, stops });
    vec(fate, 2..5)
}

/// A request on its way.
#[derive(Debug, Clone)]
struct Letter {
    sent: u64,
    arrives: u64,
    returns: u64,
    content: Content,
    /// The server's answer; nothing before it arrives, or if it is lost.
    answer: Option<Result<Option<Read>, ()>>,
    request_lost: bool,
    answer_lost: bool,
}

#[derive(Debug, Clone)]
enum Content {
    Get,
    /// Take or renew, if the version is still this one.
    Write {
        version: Option<String>,
    },
}

#[derive(Debug, Clone)]
struct Run {
    name: String,
    fate: Fate,
    letters: usize,
    under_way: Option<Letter>,
    waiting: Waiting,
    /// The version that it wrote last, while it holds the Lease.
    holds: Option<String>,
    valid_until: Time,
    wake: u64,
}

impl Run {
    fn send(&mut self, now: u64, content: Content) {
        let (there, back) = self.fate.delays[self.letters % self.fate.delays.len()];
        let (request_lost, answer_lost) = self.fate.losses[self.letters % self.fate.losses.len()];
        self.letters += 1;
        let (arrives, returns) = (now + there, now + there + back);
        self.under_way = Some(Letter {
            sent: now,
            arrives,
            returns,
            content,
            answer: None,
            request_lost,
            answer_lost,
        });
    }

    fn receive(&mut self, now: u64, letter: &Letter) {
        let at = Time::from_millis;
        let Some(answer) = letter.answer.clone().filter(|_| !letter.answer_lost) else {
            self.wake = now + RENEWAL_MS / 5;
            return;
        };
        match (&letter.content, answer, self.holds.is_some()) {
            (Content::Get, Ok(read), false) => match self.waiting.decide(at(now), read.as_ref()) {
                Next::Create => self.send(now, Content::Write { version: None }),
                Next::Take => {
                    let version = read.map(|read| read.version);
                    self.send(now, Content::Write { version });
                }
                Next::Wait { .. } => self.wake = now + 1_000,
                // A person would try again.
                Next::GiveUp { .. } => {
                    self.waiting = Waiting::default();
                    self.wake = now + 1_000;
                }
            },
            (Content::Get, Ok(read), true) => match owner(&self.name, read.as_ref()) {
                Owner::Us => {
                    self.holds = read.map(|read| read.version);
                    self.wake = now + RENEWAL_MS;
                }
                Owner::Other { .. } => {
                    (self.holds, self.valid_until) = (None, Time::START);
                    self.waiting = Waiting::default();
                    self.wake = now + 1_000;
                }
            },
            (Content::Write { .. }, Ok(read), _) => {
                self.holds = read.map(|read| read.version);
                self.valid_until = at(letter.sent) + DURATION;
                self.wake = now + RENEWAL_MS;
            }
            // A conflict: look.
            (_, Err(()), _) => self.send(now, Content::Get),
        }
    }
}

const RENEWAL_MS: u64 = 1_000 * RENEWAL.as_secs();

/// The moments at which two could have acted, and how often somebody took the Lease.
fn play(fates: Vec<Fate>) -> (Vec<u64>, usize) {
    let mut server: Option<Read> = None;
    let (mut version, mut both, mut takes) = (0_u64, Vec::new(), 0);
    let mut runs: Vec<Run> = fates
        .into_iter()
        .enumerate()
        .map(|(number, fate)| Run {
            name: format!("run {number}"),
            fate,
            letters: 0,
            under_way: None,
            waiting: Waiting::default(),
            holds: None,
            valid_until: Time::START,
            wake: 0,
        })
        .collect();
    for now in (0..END).step_by(usize::try_from(TICK).unwrap()) {
        for run in &mut runs {
            if let Some(letter) = &mut run.under_way
                && letter.arrives <= now
                && letter.answer.is_none()
                && !letter.request_lost
            {
                letter.answer = Some(match &letter.content {
                    Content::Get => Ok(server.clone()),
                    Content::Write { version: expected }
                        if *expected == server.as_ref().map(|read| read.version.clone()) =>
                    {
                        let held = server.as_ref().and_then(|read| read.holder.clone());
                        takes += usize::from(held.as_ref() != Some(&run.name));
                        version += 1;
                        let holder = Some(run.name.clone());
                        server = Some(Read { version: version.to_string(), holder });
                        Ok(server.clone())
                    }
                    Content::Write { .. } => Err(()),
                });
            }
            if run.fate.stops.iter().any(|(from, to)| (*from..*to).contains(&now)) {
                continue;
            }
            // A request is given up after ten seconds.
            if let Some(letter) = run.under_way.clone() {
                if letter.returns <= now || letter.sent + 10_000 <= now {
                    run.under_way = None;
                    run.receive(now, &letter);
                }
            } else if run.wake <= now {
                let content = match &run.holds {
                    Some(version) => Content::Write { version: Some(version.clone()) },
                    None => Content::Get,
                };
                run.send(now, content);
            }
        }
        let acting = |run: &&Run| {
            run.holds.is_some() && may_send(Time::from_millis(now), run.valid_until, Duration::ZERO)
        };
        if runs.iter().filter(acting).count() > 1 {
            both.push(now);
        }
    }
    (both, takes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_two_runs_may_act_at_the_same_moment(fates in fates()) {
        let (both, _) = play(fates);
        prop_assert!(both.is_empty(), "two could have acted at {both:?} ms");
    }
}

#[test]
fn whoever_stops_is_replaced_and_learns_of_it() {
    let fate = |from, to| Fate {
        delays: vec![(50, 50)],
        losses: vec![(false, false)],
        stops: vec![(from, to)],
    };
    let (both, takes) = play(vec![fate(20_000, 90_000), fate(0, 5_000)]);
    assert!(both.is_empty());
    assert_eq!(takes, 2, "the second took over while the first was stopped, and kept it");
}
