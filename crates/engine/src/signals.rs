//! What a person or a supervisor says to the process.

use std::io;
use std::time::Duration;

use tiphys_model::{Exit, Explain, Explanation};
use tiphys_run::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What somebody who insists still waits for: to note what was done, and to give up the Lease.
const LAST_MOMENT: Duration = Duration::from_millis(1_500);

/// SIGINT and SIGTERM, one after the other as they come.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// Nobody waits for it, but who listens is not ended by it.
    _hangup: Option<unix::Signal>,
}

impl Signals {
    pub fn listen() -> Result<Self, SignalError> {
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _hangup: None,
        })
    }

    /// The same for a run, which goes on when its terminal goes away.
    pub fn listen_in_run() -> Result<Self, SignalError> {
        Ok(Signals { _hangup: Some(listen(SignalKind::hangup())?), ..Signals::listen()? })
    }

    /// None that anybody sends. A test that sends one to its own process reaches all of them.
    #[cfg(test)]
    pub(crate) fn unsent() -> Self {
        let unsent = |kind| listen(kind).expect("signals can be received");
        Signals {
            interrupt: unsent(SignalKind::user_defined1()),
            terminate: unsent(SignalKind::user_defined2()),
            _hangup: None,
        }
    }

    /// Somebody insists: a second SIGINT, or a SIGTERM, and a moment has passed in which the run
    /// could have ended by itself.
    pub(crate) async fn insisted(mut self) -> Signal {
        let first = self.next().await;
        let signal = match first {
            Signal::Interrupt => self.next().await,
            Signal::Terminate => first,
        };
        tokio::time::sleep(LAST_MOMENT).await;
        signal
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }
}

fn listen(kind: SignalKind) -> Result<unix::Signal, SignalError> {
    unix::signal(kind).map_err(SignalError)
}

/// Signals would end the process instead of being heard.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub struct SignalError(#[source] io::Error);

impl Explain for SignalError {
    fn explain(&self) -> Explanation {
        Explanation::new(Exit::Failed, "cannot listen for signals", self.0.to_string())
    }
}
