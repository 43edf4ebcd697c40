//! What a person or a supervisor says to the process.

use tiphys_run::Signal;
use tokio::signal::unix::{self, SignalKind};

use tiphys_cluster::{ClusterError, Kind};

/// SIGINT and SIGTERM, one after the other as they come.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    pub fn listen() -> Result<Self, ClusterError> {
        let listen = |kind| {
            unix::signal(kind).map_err(|error| {
                ClusterError::new(Kind::Failed, "signals cannot be received", error.to_string())
            })
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }
}
