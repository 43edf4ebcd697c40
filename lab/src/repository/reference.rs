//! The reference platform with apps that take a chosen time.

use std::time::Duration;

use tiphys_model::platform::Retry;
use tiphys_model::{App, Platform};
use tiphys_spec::{Source, Sources};

use super::{AppSource, Behaviour, PlatformRepository};
use crate::error::LabError;

const REFERENCE: &str = include_str!("../../../examples/reference/platform.yaml");

impl PlatformRepository {
    /// The graph of the reference platform. The prefix stands before the names of platform,
    /// projects and apps, because several platforms may share one Argo CD.
    pub fn reference(
        repo_url: &str,
        prefix: &str,
        healthy_after: impl Fn(&App) -> Duration,
    ) -> Result<Self, LabError> {
        let platform = read()?;
        let named = |name: &str| format!("{prefix}{name}");
        let apps = platform.apps.iter().map(|app| AppSource {
            name: named(app.name.as_str()),
            stack: app.stack.as_str().to_owned(),
            app_type: app.app_type,
            typical: Some(app.typical),
            depends_on: app
                .dependencies
                .iter()
                .map(|dependency| named(platform.apps[dependency.app.position()].name.as_str()))
                .collect(),
            timeouts: (app.timeouts.sync != app.app_type.timeout()
                || app.timeouts.health != app.app_type.timeout())
            .then_some(app.timeouts),
            retry: (app.retry != Retry::default()).then_some(app.retry),
            tolerate_drift: app.tolerate_drift.clone(),
            health: app.health.clone(),
            cluster: None,
            behaviour: Behaviour::Healthy { after: healthy_after(app) },
            generation: 1,
        });
        Ok(PlatformRepository {
            name: named(platform.name.as_str()),
            repo_url: repo_url.to_owned(),
            target_revision: "main".to_owned(),
            project: named(platform.argocd.projects.first().map_or("platform", String::as_str)),
            root_project: named(&platform.argocd.root_project),
            namespace_prefix: String::new(),
            hold: Some(platform.policies.hold),
            concurrency: Some(platform.policies.concurrency.get()),
            timeout: Some(platform.policies.timeout),
            carries_its_file: false,
            workflows: platform.workflows,
            deploy: platform.deploy.mode,
            commit_status: platform.deploy.commit_status.clone(),
            triggers: platform.triggers.clone(),
            apps: apps.collect(),
        })
    }
}

fn read() -> Result<Platform, LabError> {
    let name = "examples/reference/platform.yaml";
    let wrong = |why: String| LabError::Other(format!("{name} cannot be read: {why}"));
    let source = Source::new(name, REFERENCE.into())
        .map_err(|not| wrong(format!("it contains {}", not.found)))?;
    tiphys_spec::platform(&Sources::new(vec![source]))
        .map_err(|problems| wrong(format!("{:?}", problems.into_sorted())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::repository::Files;

    /// The example in this repository: each minute of the real platform is a second.
    fn example() -> PlatformRepository {
        let url = "https://git.example.org/platform.git";
        PlatformRepository::reference(url, "", |app| app.typical / 60).unwrap()
    }

    #[test]
    fn it_has_the_graph_of_the_reference_platform() {
        let text = example().files().remove("platform.yaml").unwrap();
        let source = Source::new("platform.yaml", text.into_bytes()).unwrap();
        let written = tiphys_spec::platform(&Sources::new(vec![source])).unwrap();
        let reference = read().unwrap();
        assert_eq!(written, Platform { environment: None, ..reference });
    }

    #[test]
    fn a_prefix_stands_before_every_name() {
        let platform = PlatformRepository::reference("", "t1-", |_| Duration::ZERO).unwrap();
        let names = platform.apps.iter().flat_map(|app| app.depends_on.iter().chain([&app.name]));
        let others = [&platform.name, &platform.project, &platform.root_project];
        assert!(names.chain(others).all(|name| name.starts_with("t1-")));
        assert_eq!(platform.apps.len(), 43);
    }

    /// `TIPHYS_REGENERATE=1 cargo test -p tiphys-lab` writes them instead.
    #[test]
    fn the_example_is_what_the_generator_makes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/reference");
        let mut files = example().files();
        // That one is written by people.
        files.remove("platform.yaml");
        if std::env::var_os("TIPHYS_REGENERATE").is_some() {
            for part in ["root", "apps"] {
                fs::remove_dir_all(folder.join(part)).unwrap_or_default();
            }
            for (path, text) in &files {
                let file = folder.join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
        }
        let mut found = Files::new();
        for part in ["root", "apps"] {
            collect(&folder, part, &mut found);
        }
        let paths = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        let advice = "run: TIPHYS_REGENERATE=1 cargo test -p tiphys-lab";
        assert_eq!(paths(&found), paths(&files), "{advice}");
        for (path, text) in &files {
            assert_eq!(&found[path], text, "{path}: {advice}");
        }
    }

    fn collect(folder: &Path, below: &str, found: &mut Files) {
        for entry in fs::read_dir(folder.join(below)).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                collect(folder, &path, found);
            } else {
                found.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
}
