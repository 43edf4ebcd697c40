//! Time and memory by the number of apps.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{generate, plan};

const SIZES: [usize; 7] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000];
/// The best of several: whatever else the machine does only ever adds time.
const LEAST_ROUNDS: usize = 7;
const LEAST_TIME: Duration = Duration::from_secs(2);

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    println!(
        "| apps | bytes | read ms | plan ms | both ms | µs per app | vs. previous | peak MiB |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut previous: Option<f64> = None;
    for apps in SIZES {
        let text = generate::platform(apps);
        let mut best: Option<plan::Times> = None;
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < LEAST_ROUNDS || start.elapsed() < LEAST_TIME {
            rounds += 1;
            let (_, times) = plan::timed(text.clone().into_bytes())?;
            best = best.into_iter().chain([times]).min_by_key(|times| times.total());
        }
        let best = best.ok_or("no round was run")?;
        let micros = best.total().as_secs_f64() * 1e6 / f64::from(u32::try_from(apps)?);
        let growth = previous.map_or(String::new(), |previous| format!("{:.2}", micros / previous));
        println!(
            "| {apps} | {} | {:.2} | {:.2} | {:.2} | {micros:.2} | {growth} | {:.1} |",
            text.len(),
            best.read.as_secs_f64() * 1e3,
            best.plan.as_secs_f64() * 1e3,
            best.total().as_secs_f64() * 1e3,
            peak_mib(&text)?,
        );
        previous = Some(micros);
    }
    Ok(())
}

/// Peak memory of a process that reads and plans this platform once and nothing else: within one
/// process the largest size would hide the others.
fn peak_mib(text: &str) -> Result<f64, Box<dyn Error>> {
    let file = PlatformFile::create(text)?;
    let output = Command::new(std::env::current_exe()?).arg("plan-once").arg(&file.0).output()?;
    let answer = String::from_utf8(output.stdout)?;
    let kib: u32 = answer.split_whitespace().nth(1).ok_or("the child measured nothing")?.parse()?;
    Ok(f64::from(kib) / 1024.0)
}

/// A file that is removed again.
pub(crate) struct PlatformFile(pub(crate) PathBuf);

impl PlatformFile {
    pub(crate) fn create(text: &str) -> Result<Self, Box<dyn Error>> {
        let name = format!("tiphys-bench-{}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text)?;
        Ok(PlatformFile(path))
    }
}

impl Drop for PlatformFile {
    fn drop(&mut self) {
        // Nothing can be done about a file that stays.
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}
