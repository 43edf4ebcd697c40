//! Growth in instructions, which a busy machine does not change.

use std::error::Error;
use std::io::ErrorKind;
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
    if let Some(unavailable) = unavailable()? {
        return Ok(unavailable);
    }
    println!("| apps | instructions | per app |\n|---:|---:|---:|");
    let small = print_row(SMALL)?;
    let large = print_row(LARGE)?;
    let ratio = large / small;
    println!("\nratio {ratio:.2}, at most {MOST}");
    Ok(if ratio > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How to end if there is no valgrind.
pub(crate) fn unavailable() -> Result<Option<ExitCode>, Box<dyn Error>> {
    match Command::new("valgrind").arg("--version").stdout(Stdio::null()).status() {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("valgrind is not installed (Debian: `apt install valgrind`)");
            Ok(Some(ExitCode::from(UNAVAILABLE)))
        }
        Err(error) => Err(error.into()),
    }
}

fn print_row(apps: u32) -> Result<f64, Box<dyn Error>> {
    let file = PlatformFile::create(&generate::platform(usize::try_from(apps)?))?;
    let path = file.0.to_str().ok_or("the path of the temporary file is not text")?;
    let (instructions, _) = count(&["plan-once", path])?;
    println!("| {apps} | {instructions:.0} | {:.0} |", instructions / f64::from(apps));
    Ok(instructions)
}

/// Instructions of one process that runs a command of this program, its start included, and
/// what it printed.
pub(crate) fn count(command: &[&str]) -> Result<(f64, String), Box<dyn Error>> {
    let name = format!("tiphys-bench-{}.callgrind", std::process::id());
    let report = std::env::temp_dir().join(name);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", report.display()))
        .arg(std::env::current_exe()?)
        .args(command)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = std::fs::read_to_string(&report)?;
    std::fs::remove_file(&report)?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let total = total.ok_or("callgrind wrote no totals")?.trim().parse()?;
    Ok((total, String::from_utf8(output.stdout)?))
}
