//! Growth in instructions, which a busy machine does not change.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::UNAVAILABLE;
use crate::curve::PlatformFile;
use crate::generate;

const SMALL: u32 = 1_000;
const LARGE: u32 = 10_000;
/// Ten times the apps. Sorting alone grows by n log n, which is 13.3 for its own share; more
/// than this for everything together means that something is no longer near-linear.
const MOST: f64 = 11.5;

pub(crate) fn run() -> Result<ExitCode, Box<dyn Error>> {
    match Command::new("valgrind").arg("--version").stdout(Stdio::null()).status() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("valgrind is not installed (Debian: `apt install valgrind`)");
            return Ok(ExitCode::from(UNAVAILABLE));
        }
        Err(error) => return Err(error.into()),
    }
    println!("| apps | instructions | per app |\n|---:|---:|---:|");
    let small = print_row(SMALL)?;
    let large = print_row(LARGE)?;
    let ratio = large / small;
    println!("\nratio {ratio:.2}, at most {MOST}");
    Ok(if ratio > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_row(apps: u32) -> Result<f64, Box<dyn Error>> {
    let file = PlatformFile::create(&generate::platform(usize::try_from(apps)?))?;
    let instructions = count(&file.0)?;
    println!("| {apps} | {instructions:.0} | {:.0} |", instructions / f64::from(apps));
    Ok(instructions)
}

/// Instructions of one process that reads and plans the file, its start included.
fn count(platform: &Path) -> Result<f64, Box<dyn Error>> {
    let report = platform.with_extension("callgrind");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", report.display()))
        .arg(std::env::current_exe()?)
        .arg("plan-once")
        .arg(platform)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = std::fs::read_to_string(&report)?;
    std::fs::remove_file(&report)?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind wrote no totals")?.trim().parse()?)
}
