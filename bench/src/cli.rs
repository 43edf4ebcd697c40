//! What a person waits for at the prompt.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

pub(crate) const REFERENCE: &str = "examples/reference/platform.yaml";
const ROUNDS: usize = 50;

pub(crate) fn run(tiphys: &Path, platform: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let with = |args: &[&str]| {
        let mut command = Command::new(tiphys);
        command.args(args);
        command
    };
    let mut plan = with(&["plan", "-f"]);
    plan.arg(platform);
    let commands = [
        // What starting any process costs here.
        ("true", Command::new("true")),
        ("tiphys --help", with(&["--help"])),
        ("tiphys version", with(&["version"])),
        ("tiphys plan", plan),
    ];
    println!("| command | best ms | median ms |\n|---|---:|---:|");
    for (name, mut command) in commands {
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            times.push(time(&mut command)?);
        }
        times.sort();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        println!("| `{name}` | {:.2} | {:.2} |", millis(times[0]), millis(times[ROUNDS / 2]));
    }
    println!("\nbinary: {} bytes", std::fs::metadata(tiphys)?.len());
    Ok(ExitCode::SUCCESS)
}

fn time(command: &mut Command) -> Result<Duration, Box<dyn Error>> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed();
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(took)
}
