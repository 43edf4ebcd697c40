//! Long-running processes: started in the background, known again by id and start time, so that
//! a lab never ends a process that it did not start, even if the id has been used again.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command;
use crate::error::LabError;
use crate::home::Home;

/// One process of a lab.
pub(crate) struct Process<'a> {
    home: &'a Home,
    name: &'static str,
}

/// Which process it is: ids are reused, start times of the same id are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    pid: u32,
    started: u64,
}

impl<'a> Process<'a> {
    pub(crate) fn new(home: &'a Home, name: &'static str) -> Self {
        Process { home, name }
    }

    fn record(&self) -> PathBuf {
        self.home.path("run").join(format!("{}.pid", self.name))
    }

    fn recorded(&self) -> Option<Identity> {
        let text = fs::read_to_string(self.record()).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        Some(Identity { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    pub(crate) fn is_running(&self) -> bool {
        self.recorded().is_some_and(|identity| start_time(identity.pid) == Some(identity.started))
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.recorded().filter(|_| self.is_running()).map(|identity| identity.pid)
    }

    /// Starts it unless it is running. Its output goes to its log.
    pub(crate) fn start(&self, command: &mut Command) -> Result<(), LabError> {
        if self.is_running() {
            return Ok(());
        }
        self.home.make("run")?;
        self.home.make("logs")?;
        let path = self.home.log(self.name);
        let log = File::create(&path).map_err(LabError::file("could not write", &path))?;
        let again = log.try_clone().map_err(LabError::file("could not write", &path))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            // A signal to the terminal of `lab up` is not for it.
            .process_group(0)
            .spawn()
            .map_err(|source| LabError::Start { command: command::said(command), source })?;
        let started = start_time(child.id()).unwrap_or_default();
        self.home
            .write(&format!("run/{}.pid", self.name), format!("{} {started}\n", child.id()))?;
        Ok(())
    }

    /// Asks it to end, and makes it end if it does not.
    pub(crate) fn stop(&self) -> Result<(), LabError> {
        if let Some(pid) = self.pid() {
            signal(pid, "TERM")?;
            let deadline = Instant::now() + Duration::from_secs(10);
            while self.is_running() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(50));
            }
            if self.is_running() {
                signal(pid, "KILL")?;
                while self.is_running() {
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
        match fs::remove_file(self.record()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LabError::File {
                doing: "could not remove",
                path: self.record(),
                source: error,
            }),
            _ => Ok(()),
        }
    }

    /// Waits until `ready` says so; an error with the end of its log if it dies or takes too long.
    pub(crate) fn wait(
        &self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + patience;
        while !ready() {
            if !self.is_running() {
                return Err(LabError::Died { name: self.name.to_owned(), log: self.log_tail() });
            }
            if Instant::now() >= deadline {
                let seconds = patience.as_secs();
                return Err(LabError::NotReady {
                    what: what.to_owned(),
                    seconds,
                    log: self.log_tail(),
                });
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub(crate) fn log_tail(&self) -> String {
        let path = self.home.log(self.name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(15)..];
        format!("--- the end of {}\n{}", path.display(), tail.join("\n"))
    }
}

fn signal(pid: u32, name: &str) -> Result<(), LabError> {
    // It may have ended meanwhile: then there is nothing to signal.
    command::output(Command::new("kill").args([&format!("-{name}"), &pid.to_string()])).map(|_| ())
}

/// When a process started, in ticks since boot; `None` if there is none, or only its zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything; what follows it does not.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let state = *fields.first()?;
    (state != "Z").then_some(())?;
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let own = std::process::id();
        assert_eq!(start_time(own), start_time(own));
        assert!(start_time(own).is_some());
        assert_eq!(start_time(0), None);
    }
}
