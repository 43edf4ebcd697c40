//! `tiphys init --root-app`: the platform file as a part of the root app, so that runs can read it from
//! Git.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use tiphys_engine::platform_file::LABEL;
use tiphys_model::{Exit, Explain, Explanation, PlatformName};
use tiphys_spec::yaml_text;

use crate::failure::Failure;
use crate::{input, output};

/// What a root app is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Chart,
    /// Its file.
    Kustomization(PathBuf),
    Manifests,
}

impl Kind {
    fn of(directory: &Path) -> Kind {
        let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
        let kustomization =
            names.iter().map(|name| directory.join(name)).find(|path| path.exists());
        match kustomization {
            _ if directory.join("Chart.yaml").exists() => Kind::Chart,
            Some(path) => Kind::Kustomization(path),
            None => Kind::Manifests,
        }
    }
}

pub(super) fn write(directory: &Path, file: &Path) -> Result<(), Failure> {
    let name = input::own_platform(Some(file))?.name;
    let real = file.canonicalize().map_err(Failure::unwritable(file))?;
    let directory = &directory.canonicalize().map_err(Failure::unwritable(directory))?;
    if real.is_dir() {
        return Err(RootAppError::Directory(file.to_owned()).into());
    }
    let inside = real.strip_prefix(directory).ok();
    match Kind::of(directory) {
        Kind::Chart => {
            let path = match inside {
                Some(path) => path.to_owned(),
                None => link(directory, &real)?,
            };
            put(&directory.join("templates/platform-file.yaml"), &chart(&name, &path))?;
        }
        Kind::Kustomization(kustomization) => {
            let Some(path) = inside else {
                let (file, directory) = (file.to_owned(), directory.clone());
                return Err(RootAppError::Outside { file, directory }.into());
            };
            append(&kustomization, &generator(&name, path))?;
        }
        Kind::Manifests => {
            let text = fs::read_to_string(&real).map_err(Failure::unwritable(file))?;
            put(&directory.join("platform-file.yaml"), &manifest(&name, &text))?;
            output::note(
                "this is a copy: run the command again when the platform file has changed",
            );
        }
    }
    output::note(&format!("commit and push it; then: tiphys deploy --platform {name}"));
    Ok(())
}

/// What begins every file that is written here, and nobody else's.
fn head(platform: &PlatformName) -> String {
    format!(
        "# The platform file, for `tiphys deploy --platform {platform}`. It is rendered and never applied.\n"
    )
}

fn config_map(platform: &PlatformName) -> String {
    let label = yaml_text(platform.as_str());
    format!(
        "{}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-file\n  labels: {{ {LABEL}: \
         {label} }}\n  annotations: {{ argocd.argoproj.io/hook: Skip }}\ndata:\n",
        head(platform)
    )
}

fn chart(platform: &PlatformName, path: &Path) -> String {
    let path = path.display().to_string();
    let path = serde_json::Value::from(path);
    format!("{}  platform.yaml: {{{{ .Files.Get {path} | toJson }}}}\n", config_map(platform))
}

fn manifest(platform: &PlatformName, text: &str) -> String {
    format!("{}  platform.yaml: {}\n", config_map(platform), serde_json::Value::from(text))
}

/// An entry of a kustomization that has no other generator.
fn generator(platform: &PlatformName, path: &Path) -> String {
    let label = yaml_text(platform.as_str());
    let file = format!("platform.yaml={}", path.display());
    format!(
        "{}configMapGenerator:\n  - name: platform-file\n    files: [{}]\n    options:\n      \
         disableNameSuffixHash: true\n      labels: {{ {LABEL}: {label} }}\n      annotations: {{ \
         argocd.argoproj.io/hook: Skip }}\n",
        head(platform),
        serde_json::Value::from(file)
    )
}

/// Writes a file. One that somebody else has written stays.
fn put(path: &Path, text: &str) -> Result<(), Failure> {
    match fs::read_to_string(path) {
        Ok(found) if found == text => return Ok(()),
        Ok(found) if !found.contains(LABEL) => {
            return Err(RootAppError::Taken(path.to_owned()).into());
        }
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Failure::unwritable(folder))?;
    }
    fs::write(path, text).map_err(Failure::unwritable(path))?;
    output::note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Adds to a kustomization, behind what somebody has written.
fn append(path: &Path, entry: &str) -> Result<(), Failure> {
    let found = fs::read_to_string(path).map_err(Failure::unwritable(path))?;
    if found.contains(LABEL) {
        return Ok(());
    }
    if found.lines().any(|line| line.starts_with("configMapGenerator")) {
        let (path, entry) = (path.to_owned(), entry.to_owned());
        return Err(RootAppError::Generator { path, entry }.into());
    }
    let end = if found.ends_with('\n') { "" } else { "\n" };
    fs::write(path, format!("{found}{end}{entry}")).map_err(Failure::unwritable(path))?;
    output::note(&format!("added a generator to {}", path.display()));
    Ok(())
}

/// A link in the chart to a file outside of it: Helm reads nothing else.
fn link(chart: &Path, file: &Path) -> Result<PathBuf, Failure> {
    let name = PathBuf::from("platform.yaml");
    let path = chart.join(&name);
    let target = relative(chart, file);
    match fs::read_link(&path) {
        Ok(found) if found == target => return Ok(name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(_) | Err(_) => return Err(RootAppError::Taken(path).into()),
    }
    symlink(&target, &path).map_err(Failure::unwritable(&path))?;
    output::note(&format!("linked {} to {}", path.display(), target.display()));
    Ok(name)
}

/// The way from a directory to a file; both are absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (mut from, mut to) = (from.components().peekable(), to.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    from.map(|_| Component::ParentDir).chain(to).collect()
}

/// Why the platform file cannot become a part of the root app.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
enum RootAppError {
    /// The platform is in several files.
    Directory(PathBuf),
    /// Kustomize reads nothing outside.
    Outside { file: PathBuf, directory: PathBuf },
    /// Something else is there.
    Taken(PathBuf),
    /// A list of generators, which nobody but its author should edit.
    Generator { path: PathBuf, entry: String },
}

impl Explain for RootAppError {
    fn explain(&self) -> Explanation {
        let wrong = |what: &str, why: String| Explanation::new(Exit::Configuration, what, why);
        match self {
            RootAppError::Directory(path) => wrong(
                "cannot write a platform of several files",
                format!("{} is a directory", path.display()),
            )
            .hint(
                "write the ConfigMap yourself, with a key for each file: see docs/platform-file.md",
            ),
            RootAppError::Outside { file, directory } => wrong(
                "the platform file is outside the kustomization",
                format!("Kustomize cannot read {} from {}", file.display(), directory.display()),
            )
            .hint("move the platform file into that directory"),
            RootAppError::Taken(path) => wrong(
                "the file already exists",
                format!("{} does not contain the platform file", path.display()),
            )
            .hint("rename it, and run this again"),
            RootAppError::Generator { path, entry } => wrong(
                "the kustomization already has generators",
                format!("{} has `configMapGenerator`", path.display()),
            )
            .hint(format!("add this entry to it:\n{}", entry.trim_end())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> PlatformName {
        PlatformName::parse("shop").unwrap()
    }

    #[test]
    fn the_way_to_a_file_leads_up_as_far_as_needed() {
        let way = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(way("/a/root", "/a/platform.yaml"), Path::new("../platform.yaml"));
        assert_eq!(way("/a/b/root", "/a/c/p.yaml"), Path::new("../../c/p.yaml"));
    }

    #[test]
    fn the_starter_has_what_this_writes() {
        let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/starter");
        let starter =
            fs::read_to_string(starter.join("root/templates/platform-file.yaml")).unwrap();
        let name = PlatformName::parse("starter").unwrap();
        assert_eq!(chart(&name, Path::new("platform.yaml")), starter);
    }

    #[test]
    fn a_copy_is_the_same_text_whatever_is_in_it() {
        let text = "a: \"b\"\n# ä\n\tc: |\n";
        let written = manifest(&shop(), text);
        let line = written.lines().last().unwrap().strip_prefix("  platform.yaml: ").unwrap();
        assert_eq!(serde_json::from_str::<String>(line).unwrap(), text);
    }
}
