//! Running tests on the one cluster there is: in parallel, or after all others and alone.

use std::env;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use jiff::Timestamp;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use crate::World;

/// What tests run on.
pub trait Place: Sized + Send + Sync + 'static {
    /// Reaches it; why not, otherwise.
    fn open() -> impl Future<Output = Result<Self, String>> + Send;

    /// What the logs say about a test that has failed.
    fn log_tails(&self, about: &str) -> impl Future<Output = String> + Send;
}

type Body<P> = Box<dyn FnOnce(Arc<P>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One test.
pub struct Case<P = World> {
    name: &'static str,
    disruptive: bool,
    soak: bool,
    body: Body<P>,
}

impl<P: Place> Case<P> {
    pub fn new<F>(name: &'static str, body: impl FnOnce(Arc<P>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Case { name, disruptive: false, soak: false, body: Box::new(|world| Box::pin(body(world))) }
    }

    /// It changes something that others share, so it runs last and alone.
    #[must_use]
    pub fn disruptive(mut self) -> Self {
        self.disruptive = true;
        self
    }

    /// It takes long, so it runs only if `TIPHYS_E2E_SOAK=1` says so.
    #[must_use]
    pub fn soak(mut self) -> Self {
        self.soak = true;
        self
    }
}

/// Runs the tests that the command line asks for. Without a cluster they are skipped, unless
/// `TIPHYS_LAB_REQUIRED=1` says that there must be one.
pub fn main<P: Place>(cases: Vec<Case<P>>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each waits for the cluster most of the time; more than these would wait for Argo CD, which
    // answers late when it has much to do.
    arguments.test_threads.get_or_insert(2);
    let runtime = Runtime::new().expect("threads can be started");
    let listing = arguments.list;
    let world = if listing { Err("listing".to_owned()) } else { runtime.block_on(P::open()) };
    let required = env::var("TIPHYS_LAB_REQUIRED").is_ok_and(|value| value == "1");
    if let Err(why) = &world
        && !listing
    {
        say(&format!("e2e: {why}"));
        if required {
            return ExitCode::FAILURE;
        }
        say("e2e: all tests are skipped; TIPHYS_LAB_REQUIRED=1 makes this a failure");
    }
    let world = world.ok().map(Arc::new);
    let (last, first): (Vec<Case<P>>, Vec<Case<P>>) = cases.into_iter().partition(|c| c.disruptive);
    let outcome = run(&runtime, world.as_ref(), first, &arguments);
    if listing || last.is_empty() {
        return outcome;
    }
    arguments.test_threads = Some(1);
    let last = run(&runtime, world.as_ref(), last, &arguments);
    if outcome == ExitCode::SUCCESS { last } else { outcome }
}

fn run<P: Place>(
    runtime: &Runtime,
    world: Option<&Arc<P>>,
    cases: Vec<Case<P>>,
    arguments: &Arguments,
) -> ExitCode {
    let handle = runtime.handle().clone();
    let soak = env::var("TIPHYS_E2E_SOAK").is_ok_and(|value| value == "1");
    let trials = cases.into_iter().map(|case| {
        let (world, handle) = (world.cloned(), handle.clone());
        let ignored = world.is_none() || (case.soak && !soak);
        // A closure that is called once, where one that may be called often is wanted.
        let body = Mutex::new(Some(case.body));
        let trial = Trial::test(case.name, move || {
            let body = body.lock().ok().and_then(|mut body| body.take());
            let (Some(world), Some(body)) = (world, body) else {
                return Err(Failed::from("there is no cluster"));
            };
            let began = Instant::now();
            let outcome = handle.block_on(handle.spawn(body(world.clone())));
            figure(&format!("{} took {} s", case.name, began.elapsed().as_secs()));
            outcome.map_err(|error| {
                let why = panic_message(error);
                let tails = handle.block_on(world.log_tails(case.name));
                Failed::from(format!("{why}\n{tails}"))
            })
        });
        trial.with_ignored_flag(ignored)
    });
    let conclusion = libtest_mimic::run(arguments, trials.collect());
    if conclusion.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn panic_message(error: tokio::task::JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else { return "the test was cancelled".to_owned() };
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "the test panicked".to_owned())
}

/// A figure that a test has found, for whoever keeps them.
#[expect(clippy::print_stdout, reason = "a test program talks to whoever runs it")]
pub fn figure(text: &str) {
    println!("figure: {text}");
}

/// How often something is done: as the variable says, for a soak, or as usual.
#[must_use]
pub fn count<N: FromStr>(variable: &str, usual: N) -> N {
    let Ok(text) = env::var(variable) else { return usual };
    text.parse().unwrap_or_else(|_| unreachable!("{variable} is not a number: {text}"))
}

/// What all chance in a test comes from: `TIPHYS_E2E_SEED`, or the time. It is told, so that a
/// failure can be had again.
#[must_use]
pub fn seed() -> u64 {
    let seed = env::var("TIPHYS_E2E_SEED").map_or_else(
        |_| Timestamp::now().as_millisecond().unsigned_abs(),
        |text| text.parse().expect("TIPHYS_E2E_SEED is a number"),
    );
    figure(&format!("seed {seed}"));
    seed
}

#[expect(clippy::print_stderr, reason = "a test program talks to whoever runs it")]
fn say(text: &str) {
    eprintln!("{text}");
}
