//! Argo Workflows' source, mended: its published module cannot be built as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::command;
use crate::error::LabError;

/// In upstream's repository the second is a link to the first, and a module has no links.
const SIGNALS: [&str; 2] = [
    "workflow/executor/osspecific/signal_darwin.go",
    "workflow/executor/osspecific/signal_linux.go",
];
/// The server wants pages to serve. Upstream makes them with npm; nobody looks at them here.
const PAGE: [&str; 2] = ["ui/dist/app/index.html", "<!doctype html>\n<title>lab</title>\n"];

/// A module of the lab in a place of its own, beside the source that it is built from.
pub(crate) struct Mended {
    folder: TempDir,
}

impl Mended {
    /// Copies the module and its source, which is upstream's module of this name, below `parent`. The copy
    /// lasts as long as the value.
    pub(crate) fn make(
        module: &Path,
        name: &str,
        source: &Path,
        parent: &Path,
    ) -> Result<Self, LabError> {
        fs::create_dir_all(parent).map_err(LabError::file("could not make the folder", parent))?;
        let folder =
            tempfile::tempdir_in(parent).map_err(LabError::file("could not write in", parent))?;
        let copy = folder.path().join("source");
        // Without the modes: Go keeps its modules read-only.
        let mut cp = Command::new("cp");
        command::run(cp.args(["-r", "--no-preserve=mode"]).arg(source).arg(&copy))?;
        let signals = SIGNALS.map(|file| copy.join(file));
        fs::copy(&signals[0], &signals[1])
            .map_err(LabError::file("could not copy", &signals[0]))?;
        write(&copy.join(PAGE[0]), PAGE[1])?;

        let read = |name: &str| {
            let path = module.join(name);
            fs::read_to_string(&path).map_err(LabError::file("could not read", path))
        };
        // Relative, so that the binary does not tell where it was built.
        let replaced = format!("{}\nreplace {name} => ./source\n", read("go.mod")?);
        write(&folder.path().join("go.mod"), &replaced)?;
        write(&folder.path().join("go.sum"), &read("go.sum")?)?;
        Ok(Mended { folder })
    }

    /// Where to build.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn write(path: &Path, text: &str) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::file("could not make the folder", parent))?;
    }
    fs::write(path, text).map_err(LabError::file("could not write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_what_the_module_lacks_and_goes_away() {
        let place = tempfile::tempdir().unwrap();
        let (module, source) = (place.path().join("module"), place.path().join("source"));
        write(&module.join("go.mod"), "module lab\n").unwrap();
        write(&module.join("go.sum"), "sums\n").unwrap();
        write(&source.join(SIGNALS[0]), "package osspecific\n").unwrap();

        let mended =
            Mended::make(&module, "example.org/a", &source, &place.path().join("cache")).unwrap();
        let folder = mended.folder().to_owned();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read(&format!("source/{}", SIGNALS[1])), "package osspecific\n");
        assert_eq!(read(&format!("source/{}", PAGE[0])), PAGE[1]);
        assert_eq!(read("go.mod"), "module lab\n\nreplace example.org/a => ./source\n");
        assert_eq!(read("go.sum"), "sums\n");
        assert!(!source.join(SIGNALS[1]).exists());
        drop(mended);
        assert!(!folder.exists());
    }
}
