//! What a newcomer waits for: the README's first command, from an empty target folder.

use std::error::Error;
use std::io::{BufRead, BufReader, sink};
use std::process::{Command, Stdio};
use std::time::Instant;

/// So that a machine with more cores measures the same.
const JOBS: &str = "2";
/// Linux' `USER_HZ`, the unit of `/proc/self/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    succeeded(Command::new("cargo").args(["fetch", "--locked"]))?;
    let target = tempfile::tempdir()?;
    let mut command = Command::new("cargo");
    command
        .args(["run", "--release", "--locked", "--offline", "--quiet", "--jobs", JOBS])
        .args(["--", "rehearse"])
        .env("CARGO_TARGET_DIR", target.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let before = processor_seconds()?;
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("the output is not piped")?);
    let mut first = String::new();
    output.read_line(&mut first)?;
    let waited = start.elapsed();
    std::io::copy(&mut output, &mut sink())?;
    let status = child.wait()?;
    if !status.success() || first.is_empty() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    println!("seconds to the first line: {:.0}", waited.as_secs_f64());
    println!("seconds on the processor: {:.0}", processor_seconds()? - before);
    Ok(())
}

fn succeeded(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// User and system time of all children that have ended.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program may contain spaces and ends with a bracket; `cutime` and `cstime` are
    // fields 16 and 17, and the first after the name is number 3.
    let (_, fields) = stat.rsplit_once(") ").ok_or("/proc/self/stat has another form")?;
    let mut ticks = 0;
    for field in fields.split_whitespace().skip(13).take(2) {
        ticks += field.parse::<u32>()?;
    }
    Ok(f64::from(ticks) / TICKS_PER_SECOND)
}
