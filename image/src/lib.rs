//! Container images without a registry or an engine: a tarball from files, the same bytes every time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

mod executor;

pub use executor::executor;

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{doing} at {}", path.display())]
pub struct ImageError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl ImageError {
    /// For `map_err`.
    fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ImageError { doing, path, source }
    }
}

/// An image to be written.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// `name:tag`, one or more.
    names: Vec<String>,
    entrypoint: Vec<String>,
    /// What follows the entrypoint, unless somebody says otherwise.
    command: Vec<String>,
    environment: Vec<String>,
    /// Numeric: a pod that must not run as root cannot check a name.
    user: String,
    entries: BTreeMap<String, Entry>,
    /// Layers below the entries, written before.
    layers: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
enum Entry {
    File { source: PathBuf, mode: u32 },
    Link { target: String },
    Folder { mode: u32 },
}

impl Image {
    #[must_use]
    pub fn new(name: &str) -> Self {
        Image { names: vec![name.to_owned()], user: "65532".to_owned(), ..Image::default() }
    }

    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.entrypoint = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn command(mut self, words: &[&str]) -> Self {
        self.command = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    /// A program or other file, at a path without a leading slash.
    #[must_use]
    pub fn file(mut self, path: &str, source: &Path, mode: u32) -> Self {
        self.entries.insert(path.to_owned(), Entry::File { source: source.to_owned(), mode });
        self
    }

    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.entries.insert(path.to_owned(), Entry::Link { target: target.to_owned() });
        self
    }

    #[must_use]
    pub fn folder(mut self, path: &str, mode: u32) -> Self {
        self.entries.insert(path.to_owned(), Entry::Folder { mode });
        self
    }

    /// Another name for the same image.
    #[must_use]
    pub fn also(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// A layer that [`write_layer`] has written, above those given before.
    #[must_use]
    pub fn layer(mut self, tarball: &Path) -> Self {
        self.layers.push(tarball.to_owned());
        self
    }

    /// What the image is made of, as a few digits. Files count by path: those of the cache have
    /// their version in it.
    #[must_use]
    pub fn key(&self) -> String {
        short_digest(format!("{self:?}").as_bytes())
    }

    /// Writes the image in the form that `ctr images import` and `docker load` read.
    pub fn write(&self, target: &Path) -> Result<(), ImageError> {
        let failed = || ImageError::file("could not write the image", target);
        let top = target.with_extension("layer");
        fs::write(&top, self.top_layer().map_err(failed())?).map_err(failed())?;
        let layers: Vec<&PathBuf> = self.layers.iter().chain([&top]).collect();
        let digests = layers
            .iter()
            .map(|layer| file_digest(layer).map_err(ImageError::file("could not read", *layer)))
            .collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = digests.iter().map(|digest| format!("{digest}.tar")).collect();
        let diff_ids: Vec<String> = digests.iter().map(|d| format!("sha256:{d}")).collect();
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Cmd": self.command,
                "Env": self.environment,
                "User": self.user,
            },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        })
        .to_string();
        let config_name = format!("{}.json", hex(&Sha256::digest(config.as_bytes())));
        let manifest =
            json!([{ "Config": config_name, "RepoTags": self.names, "Layers": names }]).to_string();

        let half = target.with_extension("half");
        let file = fs::File::create(&half).map_err(failed())?;
        let mut archive = tar::Builder::new(io::BufWriter::new(file));
        append(&mut archive, &config_name, config.as_bytes()).map_err(failed())?;
        for (name, layer) in names.iter().zip(&layers) {
            append_file(&mut archive, name, layer).map_err(failed())?;
        }
        append(&mut archive, "manifest.json", manifest.as_bytes()).map_err(failed())?;
        archive.into_inner().and_then(|mut out| out.flush()).map_err(failed())?;
        fs::remove_file(&top).map_err(failed())?;
        fs::rename(&half, target).map_err(failed())
    }

    fn top_layer(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            match entry {
                Entry::File { source, mode } => {
                    let bytes = fs::read(source)?;
                    let mut header = header(tar::EntryType::Regular, *mode);
                    header.set_size(bytes.len() as u64);
                    archive.append_data(&mut header, path, bytes.as_slice())?;
                }
                Entry::Link { target } => {
                    let mut header = header(tar::EntryType::Symlink, 0o777);
                    archive.append_link(&mut header, path, target)?;
                }
                Entry::Folder { mode } => {
                    let mut header = header(tar::EntryType::Directory, *mode);
                    archive.append_data(&mut header, path, io::empty())?;
                }
            }
        }
        archive.into_inner()
    }
}

/// Writes everything below a folder as a layer, in the order of names.
pub fn write_layer(folder: &Path, target: &Path) -> Result<(), ImageError> {
    let failed = || ImageError::file("could not write the layer", target);
    let half = target.with_extension("half");
    let file = fs::File::create(&half).map_err(failed())?;
    let mut archive = tar::Builder::new(io::BufWriter::new(file));
    add_folder(&mut archive, folder, Path::new("")).map_err(failed())?;
    archive.into_inner().and_then(|mut out| out.flush()).map_err(failed())?;
    fs::rename(&half, target).map_err(failed())
}

fn add_folder(archive: &mut tar::Builder<impl Write>, root: &Path, below: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(below))?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let inside = below.join(&name);
        let path = root.join(&inside);
        let metadata = fs::symlink_metadata(&path)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_symlink() {
            let mut header = header(tar::EntryType::Symlink, 0o777);
            archive.append_link(&mut header, &inside, fs::read_link(&path)?)?;
        } else if metadata.is_dir() {
            let mut header = header(tar::EntryType::Directory, mode);
            archive.append_data(&mut header, &inside, io::empty())?;
            add_folder(archive, root, &inside)?;
        } else if metadata.is_file() {
            let mut header = header(tar::EntryType::Regular, mode);
            header.set_size(metadata.len());
            archive.append_data(&mut header, &inside, fs::File::open(&path)?)?;
        }
    }
    Ok(())
}

/// Nothing of the machine or the moment: the same files give the same bytes.
fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn append(archive: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = header(tar::EntryType::Regular, 0o644);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)
}

fn append_file(archive: &mut tar::Builder<impl Write>, name: &str, path: &Path) -> io::Result<()> {
    let file = fs::File::open(path)?;
    let mut header = header(tar::EntryType::Regular, 0o644);
    header.set_size(file.metadata()?.len());
    archive.append_data(&mut header, name, io::BufReader::new(file))
}

fn file_digest(path: &Path) -> io::Result<String> {
    let mut file = io::BufReader::with_capacity(1 << 20, fs::File::open(path)?);
    let mut hash = Sha256::new();
    loop {
        let bytes = io::BufRead::fill_buf(&mut file)?;
        if bytes.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(bytes);
        let read = bytes.len();
        io::BufRead::consume(&mut file, read);
    }
}

/// Enough digits to tell versions of one thing apart.
#[must_use]
pub fn short_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..6])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, b"#!/bin/true").unwrap();
        let base = folder.path().join("base");
        fs::create_dir_all(base.join("etc")).unwrap();
        fs::write(base.join("etc/b"), b"b").unwrap();
        std::os::unix::fs::symlink("b", base.join("etc/a")).unwrap();
        let image = |name: &str| {
            let (target, layer) = (folder.path().join(name), folder.path().join("base.tar"));
            write_layer(&base, &layer).unwrap();
            Image::new("lab/test:1")
                .layer(&layer)
                .file("bin/program", &program, 0o755)
                .link("bin/other", "program")
                .folder("tmp", 0o1777)
                .entrypoint(&["/bin/program"])
                .write(&target)
                .unwrap();
            fs::read(target).unwrap()
        };
        let first = image("one.tar");
        // Another time stamp on a source must not show.
        fs::write(&program, b"#!/bin/true").unwrap();
        assert_eq!(first, image("two.tar"));
        let entry = |mode| Image::new("lab/test:1").file("bin/program", &program, mode).key();
        assert_eq!(entry(0o755), entry(0o755));
        assert_ne!(entry(0o755), entry(0o700));
        assert_eq!(names(&first), ["json", "tar", "tar", "manifest.json"]);
    }

    /// The names in an archive, without the digests.
    fn names(bytes: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let path = entry.unwrap().path().unwrap().display().to_string();
                match path.split_once('.') {
                    Some((digest, end)) if digest.len() == 64 => end.to_owned(),
                    _ => path,
                }
            })
            .collect()
    }
}
