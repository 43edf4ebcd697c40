//! The program of this build as an image. Unlike the one that is released, it is linked with this
//! machine's libraries, so they come along.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use tiphys_image::Image;
use tiphys_lab::{Cluster, Home};
use tokio::sync::OnceCell;

use crate::tiphys;

/// Where the program is in it.
pub const PROGRAM: &str = "/tiphys";

/// The name of the image, which the lab's node has.
pub async fn executor() -> &'static str {
    static NAME: OnceCell<String> = OnceCell::const_new();
    let load = || async { tokio::task::spawn_blocking(load).await.expect("nobody cancels it") };
    NAME.get_or_init(load).await
}

fn load() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("tiphys");
    let mut strip = Command::new("strip");
    // Most of it is for debuggers.
    let stripped = strip.arg("-o").arg(&program).arg(tiphys::binary()).status();
    assert!(stripped.expect("strip, which comes with the linker").success());
    let bytes = std::fs::read(&program).expect("the program");
    let digest: String = Sha256::digest(&bytes)[..6].iter().map(|b| format!("{b:02x}")).collect();
    let name = format!("tiphys.lab/executor:{digest}");
    let mut image = Image::new(&name).file(&PROGRAM[1..], &program, 0o755).entrypoint(&[PROGRAM]);
    for library in libraries(&program) {
        let inside = library.display().to_string();
        image = image.file(inside.trim_start_matches('/'), &library, 0o755);
    }
    let cluster = Cluster::new(Home::from_environment(), |_| {});
    cluster.load_image(&image, &folder.path().join("image.tar")).expect("the node takes the image");
    name
}

/// What it is linked with, and who links it.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let said = Command::new("ldd").arg(program).output().expect("ldd, which comes with libc");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let words = said.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}
