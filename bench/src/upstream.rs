//! Argo CD's own evaluator on the same scripts and objects, one after the other.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};
use tiphys_health::{Evaluator, Limits};

use crate::UNAVAILABLE;
use crate::health::{ROUND, ROUNDS, rate, samples};

pub(crate) fn run() -> Result<ExitCode, Box<dyn Error>> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/modules/argocd");
    let program = std::env::current_exe()?.with_file_name("argocd-health");
    let mut build = Command::new("go");
    build.current_dir(&module).args(["build", "-mod=readonly", "-trimpath", "-o"]);
    match build.arg(&program).arg("./health").status() {
        Ok(status) if status.success() => {}
        outcome => {
            eprintln!("Argo CD's evaluator was not built with `go build`: {outcome:?}");
            return Ok(ExitCode::from(UNAVAILABLE));
        }
    }
    // One core, as ours has: Go would collect garbage on another.
    let mut upstream = Command::new(&program)
        .env("GOMAXPROCS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut requests = upstream.stdin.take().ok_or("no input")?;
    let mut answers = BufReader::new(upstream.stdout.take().ok_or("no output")?).lines();
    println!("| script | ours/s | Argo CD's/s | ratio |\n|---|---:|---:|---:|");
    for sample in samples()? {
        let ours = Evaluator::new(Limits::default()).evaluate(&sample.script, &sample.object)?;
        let mut best = 0.0_f64;
        for _ in 0..ROUNDS {
            let request = json!({
                "script": &*sample.script.text, "object": sample.object,
                "forMillis": u64::try_from(ROUND.as_millis())?,
            });
            writeln!(requests, "{request}")?;
            let answer: Value = serde_json::from_str(&answers.next().ok_or("no answer")??)?;
            let status = ours.status.map(|status| status.to_string()).unwrap_or_default();
            if answer["status"] != status || answer["message"] != ours.message {
                return Err(format!("{}: Argo CD says {answer}", sample.kind).into());
            }
            let number = |field: &str| answer[field].as_f64().ok_or("no figure");
            best = best.max(number("evaluations")? / number("seconds")?);
        }
        let rate = rate(&sample.script, &sample.object)?;
        println!("| {} | {rate:.0} | {best:.0} | {:.0} |", sample.kind, rate / best);
    }
    drop(requests);
    upstream.wait()?;
    Ok(ExitCode::SUCCESS)
}
