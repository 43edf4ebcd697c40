//! What can go wrong with a lab, and what to do about it.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("the lab needs Linux")]
    NotLinux,
    #[error("the lab needs root: it starts containers and writes network rules")]
    NotRoot,
    #[error("port {port} is taken by {holder}: end it, or run `lab down` if it is left of a lab")]
    PortTaken { port: u16, holder: String },
    #[error("{doing} at {}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("`{command}` could not be started: is it installed?")]
    Start { command: String, source: io::Error },
    #[error("`{command}` failed with {status}\n{output}")]
    Command { command: String, status: String, output: String },
    #[error("{what} was not ready after {seconds} s\n{log}")]
    NotReady { what: String, seconds: u64, log: String },
    #[error("{name} ended while it was starting\n{log}")]
    Died { name: String, log: String },
    #[error("certificates could not be made")]
    Certificates(#[from] rcgen::Error),
    #[error(transparent)]
    Image(#[from] tiphys_image::ImageError),
    #[error("{0}")]
    Other(String),
}

impl LabError {
    /// For `map_err` on files.
    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { doing, path, source }
    }
}
