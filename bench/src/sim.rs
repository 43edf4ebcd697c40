//! What a run costs: whole deployments in virtual time, without faults.

use std::error::Error;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::platform::Hold;
use tiphys_model::{Plan, Scope};
use tiphys_run::{Action, Event, Verdict};
use tiphys_sim::generate::{self, Shape};
use tiphys_sim::{Chance, Simulation, Stop};

use crate::instructions;

const SEED: u64 = 1;
const SIZES: [u32; 4] = [100, 1_000, 10_000, 100_000];
const LIMIT: u32 = 16;
const LEAST_ROUNDS: u32 = 3;
const LEAST_TIME: Duration = Duration::from_secs(1);
/// Ten times the apps, at most so much more for each transition.
const MOST: f64 = 1.25;

/// A random platform. `limit`: how many apps may be in progress; all, if there is none.
fn plan(apps: u32, limit: Option<u32>) -> Result<Arc<Plan>, Box<dyn Error>> {
    let shape = Shape { apps: usize::try_from(apps)?, unlimited: true };
    let mut platform = generate::platform(shape, &mut Chance::new(SEED));
    if let Some(limit) = limit.and_then(NonZeroU32::new) {
        platform.policies.concurrency = limit;
    }
    // The same story for every size: each app is handed off.
    platform.policies.hold = Hold::DuringRun;
    // One after the other, 100,000 apps take months.
    platform.policies.timeout = Duration::from_secs(u64::from(u32::MAX));
    Ok(Arc::new(tiphys_plan::plan(&platform, &Scope::Platform)?))
}

/// Deploys once, and counts the transitions of steps.
fn deploy(mut simulation: Simulation) -> Result<u32, Box<dyn Error>> {
    simulation.begin(Action::Deploy);
    let stop = simulation.run();
    if stop != Stop::Finished(Verdict::Succeeded) {
        return Err(format!("the deployment ended as {stop:?}").into());
    }
    let transitions = simulation.records().iter().filter(|record| is_transition(&record.event));
    Ok(u32::try_from(transitions.count())?)
}

fn is_transition(event: &Event) -> bool {
    matches!(
        event,
        Event::Waiting { .. }
            | Event::Syncing { .. }
            | Event::Converging { .. }
            | Event::Retrying { .. }
            | Event::Done { .. }
            | Event::Failed { .. }
            | Event::Skipped { .. }
            | Event::HandedOff { .. }
    )
}

pub(crate) fn curve() -> Result<(), Box<dyn Error>> {
    println!("| apps | at once | transitions | ms | transitions/s | µs each | vs. previous |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for limit in [None, Some(LIMIT)] {
        let mut previous: Option<f64> = None;
        for apps in SIZES {
            let plan = plan(apps, limit)?;
            let (transitions, time) = mean(&plan)?;
            let each = time.as_secs_f64() * 1e6 / f64::from(transitions);
            let growth = previous.map_or(String::new(), |before| format!("{:.2}", each / before));
            println!(
                "| {apps} | {} | {transitions} | {:.2} | {:.0} | {each:.2} | {growth} |",
                limit.map_or("all".to_owned(), |limit| limit.to_string()),
                time.as_secs_f64() * 1e3,
                1e6 / each,
            );
            previous = Some(each);
        }
    }
    Ok(())
}

/// Time of one deployment, over so many that the clock's steps do not matter.
fn mean(plan: &Arc<Plan>) -> Result<(u32, Duration), Box<dyn Error>> {
    let (mut rounds, mut transitions, mut time) = (0, 0, Duration::ZERO);
    while rounds < LEAST_ROUNDS || time < LEAST_TIME {
        let simulation = Simulation::new(plan.clone(), SEED, Vec::new());
        let start = on_core()?;
        transitions = deploy(simulation)?;
        time += on_core()?.saturating_sub(start);
        rounds += 1;
    }
    Ok((transitions, time / rounds))
}

/// How long this thread has been on a core: what others run in between does not count.
pub(crate) fn on_core() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split_whitespace().next().ok_or("schedstat is empty")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Sets a simulation up and, if asked, deploys, in a process of its own.
pub(crate) fn once(apps: &str, limit: &str, deployed: bool) -> Result<(), Box<dyn Error>> {
    let limit = Some(limit.parse()?).filter(|limit| *limit > 0);
    let simulation = Simulation::new(plan(apps.parse()?, limit)?, SEED, Vec::new());
    let transitions = if deployed { deploy(simulation)? } else { 0 };
    println!("{transitions}");
    Ok(())
}

pub(crate) fn instructions() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(unavailable) = instructions::unavailable()? {
        return Ok(unavailable);
    }
    println!("| apps | at once | transitions | instructions each |\n|---:|---:|---:|---:|");
    let mut worst: f64 = 0.0;
    for limit in [0, LIMIT] {
        let small = print_row(1_000, limit)?;
        let large = print_row(10_000, limit)?;
        worst = worst.max(large / small);
    }
    println!("\nratio {worst:.2}, at most {MOST}");
    Ok(if worst > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Instructions of the run alone: those of a process that deploys, less those of one that only
/// sets up.
fn print_row(apps: u32, limit: u32) -> Result<f64, Box<dyn Error>> {
    let (apps, limit) = (apps.to_string(), limit.to_string());
    let (with, printed) = instructions::count(&["sim-once", &apps, &limit])?;
    let (without, _) = instructions::count(&["sim-setup", &apps, &limit])?;
    let transitions: u32 = printed.trim().parse()?;
    let each = (with - without) / f64::from(transitions);
    let at_once = if limit == "0" { "all" } else { &limit };
    println!("| {apps} | {at_once} | {transitions} | {each:.0} |");
    Ok(each)
}
