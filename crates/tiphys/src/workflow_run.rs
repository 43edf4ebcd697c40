//! Showing a run that a workflow executes. It goes on without whoever watches.

use tiphys_cluster::Access;
use tiphys_model::Exit;
use tiphys_workflows::{Level, Place, Said, follow as follow_workflow};

use crate::args::{RunFormat, namespace_flag};
use crate::display::Display;
use crate::failure::Failure;
use crate::output;
use crate::record::Shown;

/// Which run, and how it is shown.
pub(crate) struct Followed {
    pub(crate) at: Place,
    pub(crate) format: RunFormat,
    /// The namespace of Argo CD.
    pub(crate) argocd: String,
}

/// Shows it until it ends, or until somebody has seen enough.
pub(crate) fn follow(access: &Access, followed: Followed) -> Result<Exit, Failure> {
    let Followed { at, format, argocd } = followed;
    let mut display = Display::new(format);
    let place = at.clone();
    let ended = display.watch(access, async move |client, tell| {
        Ok(follow_workflow(&client, &place, &|said| tell(shown_as(said))).await?)
    })?;
    if let Some(exit) = ended {
        display.close_followed(&format!("{} --engine workflows", namespace_flag(&argocd)));
        return Ok(display.end(exit));
    }
    let name = &at.name;
    output::note(&format!(
        "detached: the run continues in the cluster; to follow it again: tiphys attach {name}; to stop \
         it: tiphys cancel {name}"
    ));
    Ok(display.end(Exit::Interrupted))
}

fn shown_as(said: Said) -> Shown {
    match said {
        Said::Event(line) => Shown::Line(line),
        Said::Log { level: Level::Note, text } => Shown::Note(text),
        Said::Log { level: Level::Warning, text } => Shown::Warning(text),
        Said::Log { level: Level::Error, text } => Shown::Error(text),
    }
}
