//! Reading platform files from disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tiphys_engine::PlatformFiles;
use tiphys_model::{Platform, PlatformName};
use tiphys_report::Notice;
use tiphys_spec::{MAX_BYTES, NotText, Source, Sources, SyncWaves};

use crate::failure::Failure;
use crate::output;

pub(crate) const DEFAULT: &str = "platform.yaml";
const REFERENCE: &str = include_str!("../../../examples/reference/platform.yaml");
const REFERENCE_NAME: &str = "examples/reference/platform.yaml (bundled)";

/// Why no text could be had from a path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("{path} does not exist")]
    Absent { path: PathBuf },
    #[error("{path} is a link to {target}, which does not exist")]
    Dangling { path: PathBuf, target: PathBuf },
    #[error("{path} cannot be read")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} is too large")]
    TooLarge { path: PathBuf },
    #[error("{path} has no platform files")]
    NoFiles { path: PathBuf },
    #[error("{} is not a text file", .0.name)]
    NotText(NotText),
}

impl InputError {
    pub(crate) fn notice(&self) -> Notice {
        let notice = |place: String, what: &str, why: String, next: &str| Notice {
            what: what.to_owned(),
            place: Some(place),
            why: (!why.is_empty()).then_some(why),
            next: Some(next.to_owned()),
        };
        let path = |path: &Path| path.display().to_string();
        match self {
            InputError::Absent { path: p } if path(p).contains("//") => notice(
                path(p),
                "file not found",
                "platform files cannot be read from Git URLs".to_owned(),
                "clone the repository, and pass the path in the clone with `-f PATH`",
            ),
            InputError::Absent { path: p } => notice(
                path(p),
                "file not found",
                String::new(),
                "pass the platform file or its directory with `-f PATH`",
            ),
            InputError::Dangling { path: p, target } => notice(
                path(p),
                "the platform file is a broken symbolic link",
                format!("its target {} does not exist", target.display()),
                "fix the link, or pass the file itself with `-f PATH`",
            ),
            InputError::Unreadable { path: p, source } => notice(
                path(p),
                "cannot read the platform file",
                source.to_string(),
                "check the path and its permissions",
            ),
            InputError::TooLarge { path: p } => notice(
                path(p),
                "the platform file is larger than 64 MiB",
                "even a platform of 100,000 apps is smaller".to_owned(),
                "check that this is the file you meant",
            ),
            InputError::NoFiles { path: p } => notice(
                path(p),
                "no YAML files found in the directory",
                "only files that end in `.yaml` or `.yml` are read".to_owned(),
                "pass another directory, or a file",
            ),
            InputError::NotText(not) => notice(
                format!("{}:{}:{}", not.name, not.line, not.column),
                "the file is not a text file",
                format!("it contains {}", not.found),
                "save it as YAML in UTF-8",
            ),
        }
    }
}

/// Reads the platform that `-f` names, or `./platform.yaml`: for what touches a cluster.
pub(crate) fn own_platform(file: Option<&Path>) -> Result<Platform, Failure> {
    platform(Some(file.unwrap_or(Path::new(DEFAULT))))
}

/// Reads a platform, and also gives the texts that it is read from, by the names of their files.
pub(crate) fn with_files(file: &Path) -> Result<(Platform, PlatformFiles), Failure> {
    let sources = read(file, Depth::Directory).map_err(Failure::Input)?;
    let name = |path: &str| {
        let name = Path::new(path).file_name().filter(|_| !is_stdin(file));
        name.map_or_else(|| "platform.yaml".to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let files = sources.texts().map(|(path, text)| (name(path), text.to_owned())).collect();
    Ok((parsed(sources)?, files))
}

/// Reads the platform that `-f` names, or the default one.
pub(crate) fn platform(file: Option<&Path>) -> Result<Platform, Failure> {
    let sources = match file {
        Some(path) => read(path, Depth::Directory).map_err(Failure::Input)?,
        None if fs::symlink_metadata(DEFAULT).is_ok() => {
            read(Path::new(DEFAULT), Depth::Directory).map_err(Failure::Input)?
        }
        None => {
            output::note("./platform.yaml not found: using the bundled reference platform");
            let source = Source::new(REFERENCE_NAME, REFERENCE.into());
            Sources::new(vec![source.map_err(|e| Failure::Input(InputError::NotText(e)))?])
        }
    };
    parsed(sources)
}

/// The platform that these files describe.
pub(crate) fn parsed(sources: Sources) -> Result<Platform, Failure> {
    match tiphys_spec::platform(&sources) {
        Ok(platform) => {
            check_environment(&platform)?;
            Ok(platform)
        }
        Err(problems) => Err(Failure::Platform(Box::new(sources), problems)),
    }
}

/// The same as [`platform`] for what must not say anything: whatever is wrong, there is none.
pub(crate) fn silently(file: Option<&Path>) -> Option<Platform> {
    let file = file.unwrap_or(Path::new(DEFAULT));
    let sources = if is_stdin(file) { return None } else { read(file, Depth::Directory).ok()? };
    tiphys_spec::platform(&sources).ok()
}

/// What `--edges-from-waves` means.
pub(crate) fn sync_waves(edges: bool) -> SyncWaves {
    if edges { SyncWaves::Edges } else { SyncWaves::Ignored }
}

/// Writes a platform file from the annotations of the Applications in a directory. Nothing is
/// touched, so `TIPHYS_ENVIRONMENT` does not matter.
pub(crate) fn platform_file_from_applications(
    directory: &Path,
    name: PlatformName,
    waves: SyncWaves,
) -> Result<String, Failure> {
    let sources = read(directory, Depth::Tree).map_err(Failure::Input)?;
    match tiphys_spec::platform_file_from_applications(name, waves, &sources) {
        Ok(text) => {
            note_passed_over(waves, &sources);
            Ok(text)
        }
        Err(problems) => Err(Failure::Platform(Box::new(sources), problems)),
    }
}

fn note_passed_over(waves: SyncWaves, sources: &Sources) {
    for note in tiphys_spec::passed_over(waves, sources).notes() {
        output::note(&note);
    }
}

/// Reads a platform from the annotations of the Applications in a directory.
pub(crate) fn platform_from_applications(
    directory: &Path,
    waves: SyncWaves,
) -> Result<Platform, Failure> {
    let sources = read(directory, Depth::Tree).map_err(Failure::Input)?;
    let name = PlatformName::parse("applications").expect("`applications` is a valid name");
    let platform = match tiphys_spec::platform_from_applications(name, waves, &sources) {
        Ok(platform) => platform,
        Err(problems) => return Err(Failure::Platform(Box::new(sources), problems)),
    };
    note_passed_over(waves, &sources);
    check_environment(&platform)?;
    Ok(platform)
}

/// `TIPHYS_ENVIRONMENT` protects against touching the wrong environment.
pub(crate) fn check_environment(platform: &Platform) -> Result<(), Failure> {
    let Some(wanted) = wanted_environment() else { return Ok(()) };
    let found = platform.environment.as_ref().map(|environment| environment.name.clone());
    if found.as_ref() == Some(&wanted) {
        return Ok(());
    }
    Err(Failure::Environment { wanted, found })
}

/// What `TIPHYS_ENVIRONMENT` says.
pub(crate) fn wanted_environment() -> Option<String> {
    let wanted = std::env::var_os("TIPHYS_ENVIRONMENT").filter(|wanted| !wanted.is_empty());
    wanted.map(|wanted| wanted.to_string_lossy().into_owned())
}

/// Whether `-f` means what comes through stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Which files of a directory are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Directory,
    Tree,
}

/// A file, or the files of a directory, within the budget.
fn read(path: &Path, depth: Depth) -> Result<Sources, InputError> {
    if is_stdin(path) {
        let bytes = read_at_most(io::stdin().lock(), 0, path, MAX_BYTES)?;
        let source = Source::new("stdin", bytes).map_err(InputError::NotText)?;
        return Ok(Sources::new(vec![source]));
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Err(unavailable(path, error)),
    };
    let directory = metadata.is_dir();
    let paths = if directory { yaml_files(path, depth)? } else { vec![path.to_owned()] };
    let mut left = MAX_BYTES;
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        let bytes = read_file(&path, left)?;
        left -= bytes.len() as u64;
        let name = path.display().to_string();
        sources.push(Source::new(name, bytes).map_err(InputError::NotText)?);
    }
    Ok(if directory { Sources::directory(sources) } else { Sources::new(sources) })
}

fn unavailable(path: &Path, source: io::Error) -> InputError {
    let path = path.to_owned();
    if source.kind() != io::ErrorKind::NotFound {
        return InputError::Unreadable { path, source };
    }
    match fs::read_link(&path) {
        Ok(target) => InputError::Dangling { path, target },
        Err(_) => InputError::Absent { path },
    }
}

/// `*.yaml` and `*.yml` that are not hidden, in byte order.
fn yaml_files(directory: &Path, depth: Depth) -> Result<Vec<PathBuf>, InputError> {
    let mut paths = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let unreadable = |source| InputError::Unreadable { path: directory.clone(), source };
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // A link to a directory could lead back to where it is.
            if entry.file_type().map_err(unreadable)?.is_dir() {
                directories.extend((depth == Depth::Tree).then_some(path));
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml")
                && !path.is_dir()
            {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() {
        return Err(InputError::NoFiles { path: directory.to_owned() });
    }
    paths.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(paths)
}

/// Reads at most `limit` bytes. A regular file is refused by its size before it is opened;
/// a pipe, which has none, as soon as it has said too much.
fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, InputError> {
    let metadata = fs::metadata(path).map_err(|error| unavailable(path, error))?;
    if metadata.len() > limit {
        return Err(InputError::TooLarge { path: path.to_owned() });
    }
    let file = File::open(path).map_err(|error| unavailable(path, error))?;
    let size = usize::try_from(metadata.len()).unwrap_or_default();
    read_at_most(file, size, path, limit)
}

fn read_at_most(
    from: impl Read,
    size: usize,
    path: &Path,
    limit: u64,
) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::with_capacity(size + 1);
    from.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| InputError::Unreadable { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}
