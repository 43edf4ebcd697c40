//! Showing a run that a workflow executes. It goes on without whoever watches.

use std::sync::mpsc::channel;
use std::thread;

use tiphys_cluster::Access;
use tiphys_engine::Signals;
use tiphys_model::Exit;
use tiphys_workflows::{Level, Place, Said, follow as follow_workflow};

use crate::args::RunFormat;
use crate::display::Display;
use crate::failure::Failure;
use crate::record::Shown;
use crate::{output, runtime};

/// Which run, and how it is shown.
pub(crate) struct Followed {
    pub(crate) at: Place,
    pub(crate) format: RunFormat,
    /// Of the command that deploys again.
    pub(crate) flags: String,
}

/// How following it ended.
enum End {
    Run(Exit),
    Detached,
}

/// Shows it until it ends, or until somebody has seen enough.
pub(crate) fn follow(access: &Access, followed: Followed) -> Result<Exit, Failure> {
    let Followed { at, format, flags } = followed;
    let mut display = Display::new(format);
    let (show, shown) = channel();
    let (access, place) = (access.clone(), at.clone());
    let following = thread::spawn(move || {
        let tell = |said| show.send(shown_as(said)).unwrap_or_default();
        runtime::block_on(async {
            let mut signals = Signals::listen()?;
            let client = access.client().await?;
            tokio::select! {
                ended = follow_workflow(&client, &place, &tell) => Ok(End::Run(ended?.exit)),
                _ = signals.next() => Ok(End::Detached),
            }
        })
    });
    display.show(&shown);
    let ended = following.join().map_err(|_| Failure::Bug("following panicked".to_owned()))?;
    match ended? {
        End::Run(exit) => {
            display.close_followed(&flags);
            Ok(display.end(exit))
        }
        End::Detached => {
            let name = &at.name;
            output::note(&format!(
                "detached: the run continues in the cluster; to follow it again: tiphys attach \
                 {name}; to stop it: tiphys cancel {name}"
            ));
            Ok(display.end(Exit::Interrupted))
        }
    }
}

fn shown_as(said: Said) -> Shown {
    match said {
        Said::Event(line) => Shown::Line(line),
        Said::Log { level: Level::Note, text } => Shown::Note(text),
        Said::Log { level: Level::Warning, text } => Shown::Warning(text),
        Said::Log { level: Level::Error, text } => Shown::Error(text),
    }
}
