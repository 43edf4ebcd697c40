//! The files of `--junit` and `--summary`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstream::adapter::strip_str;
use tiphys_model::Exit;
use tiphys_report::{Outcomes, OutcomesJunit, OutcomesMarkdown};

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress_file::ProgressFile;
use crate::record::{EventsFile, empty, open_untouched};

/// All files of a run.
#[derive(Default)]
pub(crate) struct RunFiles {
    pub(crate) events: Option<EventsFile>,
    pub(crate) reports: ReportFiles,
    pub(crate) progress: Option<ProgressFile>,
}

impl RunFiles {
    pub(crate) fn open(events: Option<&Path>, reports: &ReportArgs) -> Result<Self, Failure> {
        let events = events.map(EventsFile::open).transpose()?;
        let progress = reports.progress.clone().map(ProgressFile::new);
        Ok(RunFiles { events, reports: ReportFiles::open(reports)?, progress })
    }
}

/// Opened before anything else is done: a path that is wrong must not be found after a run.
#[derive(Default)]
pub(crate) struct ReportFiles {
    junit: Option<(PathBuf, File)>,
    summary: Option<(PathBuf, File)>,
}

impl ReportFiles {
    pub(crate) fn open(args: &ReportArgs) -> Result<Self, Failure> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(open).transpose();
        Ok(ReportFiles { junit: open(&args.junit)?, summary: open(&args.summary)? })
    }

    /// Writes what an action came to; how the program ends then.
    pub(crate) fn write(self, outcomes: &Outcomes, exit: Exit) -> Exit {
        let junit = self.junit.map(|file| (file, OutcomesJunit(outcomes).to_string()));
        let summary = self.summary.map(|file| (file, OutcomesMarkdown(outcomes).to_string()));
        let mut ended = exit;
        for ((path, file), text) in [junit, summary].into_iter().flatten() {
            if let Err(error) = replace(file, &text) {
                output::warning(&format!("cannot write {}: {error}", path.display()));
                // A pipeline that reads it would be misled by success.
                ended = if exit == Exit::Done { Exit::Failed } else { exit };
            }
        }
        ended
    }

    /// The same for an action that failed before it had to do with any app.
    pub(crate) fn write_failure(self, action: &str, failure: &Failure) {
        let message = strip_str(&failure.render()).to_string();
        let outcomes = Outcomes::failed(action, failure.exit(), &message);
        self.write(&outcomes, failure.exit());
    }
}

/// What is in it stays until there is something new.
fn open(path: &Path) -> Result<(PathBuf, File), Failure> {
    let file = open_untouched(path).map_err(Failure::unwritable(path))?;
    Ok((path.to_owned(), file))
}

fn replace(mut file: File, text: &str) -> io::Result<()> {
    empty(&file)?;
    file.write_all(text.as_bytes())
}
