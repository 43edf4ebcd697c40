//! Whether there is room for a lab.

use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::LabError;

/// Images, logs and what the cluster remembers. With less, the node runs into its own limit and
/// evicts pods, which looks like everything but a full disk.
const NEEDED: u64 = 3 * GIB;
const GIB: u64 = 1 << 30;

/// Refuses a folder on a disk that is too full; `variable` is how to choose another one.
pub(crate) fn require(folder: &Path, variable: &str) -> Result<(), LabError> {
    // The folder may not be there yet, but its disk is.
    let nearest = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    let mut df = Command::new("df");
    let answer = command::run(df.args(["--block-size=1", "--output=avail"]).arg(nearest))?;
    let free =
        answer.lines().nth(1).and_then(|line| line.trim().parse().ok()).ok_or_else(|| {
            LabError::Other(format!(
                "`{}` does not tell what is free: {answer}",
                command::said(&df)
            ))
        })?;
    enough(free, folder, variable)
}

fn enough(free: u64, folder: &Path, variable: &str) -> Result<(), LabError> {
    if free >= NEEDED {
        return Ok(());
    }
    Err(LabError::Other(format!(
        "the disk of {} has {} free, and the lab needs {}: remove something (`go clean -cache` \
         often gives back gigabytes), or let {variable} name a folder on another disk",
        folder.display(),
        shown(free),
        shown(NEEDED),
    )))
}

/// `2.9 GiB`: rounded down, so that what is too little never looks like enough.
fn shown(bytes: u64) -> String {
    format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_refused_with_what_is_free_and_where() {
        let folder = Path::new("/lab");
        assert!(enough(NEEDED, folder, "LAB").is_ok());
        let error = enough(NEEDED - 1, folder, "LAB").unwrap_err().to_string();
        for part in ["/lab", "2.9 GiB free", "needs 3.0 GiB", "let LAB name"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_yet_has_a_disk() {
        // Whatever is free, it is told: the answer was understood.
        let answer = require(Path::new("/no/such/folder"), "LAB");
        assert!(answer.is_ok() || answer.unwrap_err().to_string().contains("free, and"));
    }
}
