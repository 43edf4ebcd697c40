//! The record of a run on a cluster: event lines, made and written beside the engine. It waits
//! neither for who watches nor for a terminal, and the engine does not wait for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use jiff::Timestamp;
use tiphys_engine::{Leftover, RunUpdate};
use tiphys_model::Plan;
use tiphys_run::{Action, EngineName, EventLine, Recorder};
use tokio::sync::oneshot;

use crate::cluster_record::ClusterRecord;
use crate::failure::Failure;
use crate::lossy::LossyWriter;
use crate::progress_file::ProgressFile;

/// What is passed on to who shows the run, when it has been recorded.
pub(crate) enum Shown {
    Line(Box<EventLine>),
    Note(String),
    Warning(String),
    /// Why a run elsewhere could not begin, or not go on.
    Error(String),
    Ask {
        leftovers: Vec<Leftover>,
        answer: oneshot::Sender<bool>,
    },
}

/// The file of `--events`.
pub(crate) struct EventsFile {
    path: PathBuf,
    file: File,
}

impl EventsFile {
    /// Opens it. What is in it stays until a run begins, which may never happen.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        match open_untouched(path) {
            Ok(file) => Ok(EventsFile { path: path.to_owned(), file }),
            Err(error) => Err(Failure::Events { path: path.to_owned(), error }),
        }
    }
}

/// Makes the lines of one run.
pub(crate) struct Record {
    plan: Arc<Plan>,
    action: Action,
    recorder: Option<Recorder>,
    file: Option<(PathBuf, LossyWriter<File>)>,
    cluster: Option<ClusterRecord>,
    progress: Option<ProgressFile>,
}

impl Record {
    pub(crate) fn new(action: Action, plan: &Arc<Plan>, file: Option<EventsFile>) -> Self {
        let file = file.map(|EventsFile { path, file }| (path, LossyWriter::new(file)));
        let plan = plan.clone();
        Record { plan, action, recorder: None, file, cluster: None, progress: None }
    }

    /// Also in the cluster.
    pub(crate) fn and_in(self, cluster: ClusterRecord) -> Self {
        Record { cluster: Some(cluster), ..self }
    }

    /// Also how far it is, if somebody wants to know.
    pub(crate) fn and_progress(self, progress: Option<ProgressFile>) -> Self {
        Record { progress, ..self }
    }

    /// Records until there is no more news. What could not be written, if anything.
    pub(crate) fn keep(mut self, news: &Receiver<RunUpdate>, show: &Sender<Shown>) -> Vec<String> {
        // Whoever shows it may be gone; the record goes on.
        let show = |shown| show.send(shown).unwrap_or_default();
        for news in news {
            match news {
                RunUpdate::Note(text) => show(Shown::Note(text)),
                RunUpdate::Warning(text) => show(Shown::Warning(text)),
                RunUpdate::Ask { leftovers, answer } => show(Shown::Ask { leftovers, answer }),
                RunUpdate::Began { run, engine, revisions } => {
                    if let Some(revisions) = revisions {
                        show(Shown::Note(format!("the root app is at revision {revisions}")));
                    }
                    show(self.begin(run, engine));
                }
                RunUpdate::Event(time, event) => {
                    let recorder = self.recorder.as_mut();
                    if let Some(line) = recorder.and_then(|r| r.record(time, &event)) {
                        show(self.write(line));
                    }
                }
            }
        }
        let in_file = self.file.and_then(|(path, file)| Some(file.loss()?.told(path.display())));
        let in_cluster = self.cluster.and_then(ClusterRecord::end);
        in_file.into_iter().chain(in_cluster).collect()
    }

    fn begin(&mut self, run: String, engine: EngineName) -> Shown {
        let mut recorder = Recorder::new(self.plan.clone(), self.action, Timestamp::now());
        let line = recorder.start(run, engine, None);
        self.recorder = Some(recorder);
        if let Some((_, file)) = &mut self.file {
            file.attempt(|file| empty(file));
        }
        self.write(line)
    }

    fn write(&mut self, line: EventLine) -> Shown {
        let text = json(&line);
        if let Some((_, file)) = &mut self.file {
            file.write(&text);
        }
        if let Some(cluster) = &self.cluster {
            cluster.take(&line, &text);
        }
        if let Some(progress) = &mut self.progress {
            progress.take(&line);
        }
        Shown::Line(Box::new(line))
    }
}

/// One line of JSON.
pub(crate) fn json(line: &EventLine) -> String {
    let text = serde_json::to_string(line).expect("an event line has only names and numbers");
    text + "\n"
}

/// Opens a file for writing, and leaves what is in it.
pub(crate) fn open_untouched(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(path)
}

/// Only files have anything from before; devices and pipes cannot be shortened.
pub(crate) fn empty(file: &File) -> std::io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;

    use tiphys_engine::Engine;
    use tiphys_model::Scope;
    use tiphys_run::{Event, Time, Verdict};
    use tiphys_spec::{Source, Sources};

    use super::*;

    const PLATFORM: &str = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec: { stacks: [{ name: s, apps: [{ name: a }] }] }
";

    fn plan() -> Arc<Plan> {
        let source = Source::new("platform.yaml", PLATFORM.into()).expect("text");
        let platform = tiphys_spec::platform(&Sources::new(vec![source])).expect("a platform");
        Arc::new(tiphys_plan::plan(&platform, &Scope::Platform).expect("a plan"))
    }

    fn began() -> RunUpdate {
        RunUpdate::Began { run: "run-1".to_owned(), engine: Engine::Local.name(), revisions: None }
    }

    fn finished() -> RunUpdate {
        RunUpdate::Event(
            Time::from_millis(7),
            Event::Finished { verdict: Verdict::Succeeded, unhealthy: Vec::new() },
        )
    }

    fn record(path: &Path) -> Record {
        let file = EventsFile::open(path).expect("the file can be opened");
        Record::new(Action::Deploy, &plan(), Some(file))
    }

    fn kinds(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).expect("the file can be read");
        let values = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        values.map(|line: serde_json::Value| line["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_line_is_in_the_file_before_it_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (tell, news) = channel();
        let (show, shown) = channel();
        let record = record(&path);
        let recording = std::thread::spawn(move || record.keep(&news, &show));
        let told = [
            (began(), vec!["run-started"]),
            (RunUpdate::Event(Time::START, Event::Held), vec!["run-started", "held"]),
            (finished(), vec!["run-started", "held", "run-finished"]),
        ];
        for (news, written) in told {
            tell.send(news).unwrap();
            assert!(matches!(shown.recv(), Ok(Shown::Line(_))));
            assert_eq!(kinds(&path), written);
        }
        drop(tell);
        assert_eq!(recording.join().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_old_log_is_there_until_a_run_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        fs::write(&path, "{\"kind\": \"of an old run, and longer than a new line\"}\n".repeat(99))
            .unwrap();
        for (news, lines) in [(RunUpdate::Note("not yet".to_owned()), 99), (began(), 1)] {
            let (tell, told) = channel();
            tell.send(news).unwrap();
            drop(tell);
            record(&path).keep(&told, &channel().0);
            assert_eq!(kinds(&path).len(), lines);
        }
    }

    #[test]
    fn a_full_disk_is_told_in_the_end_and_keeps_nothing_from_being_shown() {
        let (tell, news) = channel();
        let (show, shown) = channel();
        for news in [began(), RunUpdate::Event(Time::START, Event::Held), finished()] {
            tell.send(news).unwrap();
        }
        drop(tell);
        let unwritten = record(Path::new("/dev/full")).keep(&news, &show);
        let full = "3 lines were not written to /dev/full: No space left on device (os error 28)";
        assert_eq!(unwritten, [full]);
        assert_eq!(shown.try_iter().count(), 3);
    }

    #[test]
    fn the_file_is_written_though_nobody_watches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (tell, news) = channel();
        tell.send(began()).unwrap();
        tell.send(finished()).unwrap();
        drop(tell);
        assert_eq!(record(&path).keep(&news, &channel().0), Vec::<String>::new());
        assert_eq!(kinds(&path), ["run-started", "run-finished"]);
    }
}
