//! The image of the executor: one program, the certificates of public authorities, nothing else.

use std::path::Path;

use crate::Image;

/// The image of the executor. The program must be linked statically: the image has no libc.
#[must_use]
pub fn executor(name: &str, program: &Path, authorities: &Path) -> Image {
    Image::new(name)
        .file("tiphys", program, 0o755)
        .file("etc/ssl/certs/ca-certificates.crt", authorities, 0o644)
        .entrypoint(&["/tiphys"])
        .command(&["executor"])
}
