//! Finding and reading the kubeconfig by kubectl's rules: `--kubeconfig` wins over `KUBECONFIG`, which
//! wins over `~/.kube/config`; `KUBECONFIG` may list several files, and missing ones are skipped.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::config::{ExecConfig, Kubeconfig, KubeconfigError};
use secrecy::{ExposeSecret, SecretString};

/// A kubeconfig that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) kubeconfig: Kubeconfig,
    /// Where it was found, for people.
    pub(crate) place: String,
}

/// Where to look for it.
#[derive(Debug, Clone)]
pub enum KubeconfigSource {
    /// By kubectl's rules; a file that is given wins.
    Usual(Option<PathBuf>),
    /// The text of it, and what that was found in.
    Text { text: SecretString, place: &'static str },
    /// Nowhere: only the pod's own account counts.
    Pod,
}

impl Default for KubeconfigSource {
    fn default() -> Self {
        KubeconfigSource::Usual(None)
    }
}

/// Why there is none to use.
#[derive(Debug)]
pub(crate) enum NotRead {
    /// None of the files that were given exists.
    Missing(Vec<PathBuf>),
    /// The place, and what is wrong there.
    Invalid(String, KubeconfigError),
}

/// Reads it. `None`: there is none, and none was given.
pub(crate) fn read(source: &KubeconfigSource) -> Result<Option<Found>, NotRead> {
    match source {
        KubeconfigSource::Usual(given) => {
            let home = env::home_dir().map(|home| home.join(".kube/config"));
            read_of(given.as_deref(), env::var_os("KUBECONFIG"), home)
        }
        KubeconfigSource::Text { text, place } => {
            let kubeconfig = Kubeconfig::from_yaml(text.expose_secret());
            let place = (*place).to_owned();
            match kubeconfig {
                Ok(kubeconfig) => Ok(Some(Found { kubeconfig, place })),
                Err(error) => Err(NotRead::Invalid(place, error)),
            }
        }
        KubeconfigSource::Pod => Ok(None),
    }
}

fn read_of(
    given: Option<&Path>,
    variable: Option<OsString>,
    home: Option<PathBuf>,
) -> Result<Option<Found>, NotRead> {
    let listed: Vec<PathBuf> = match given {
        Some(file) => vec![file.to_owned()],
        None => env::split_paths(&variable.unwrap_or_default())
            .filter(|path| !path.as_os_str().is_empty())
            .collect(),
    };
    let optional = listed.is_empty();
    let listed = if optional { home.into_iter().collect() } else { listed };
    let files: Vec<PathBuf> = listed.iter().filter(|path| path.exists()).cloned().collect();
    if files.is_empty() {
        return if optional { Ok(None) } else { Err(NotRead::Missing(listed)) };
    }
    let mut kubeconfig = Kubeconfig::default();
    for file in &files {
        let next = Kubeconfig::read_from(file).and_then(|next| kubeconfig.merge(next));
        let place = || file.display().to_string();
        kubeconfig = next.map_err(|error| NotRead::Invalid(place(), error))?;
    }
    Ok(Some(Found { kubeconfig, place: in_words(&files) }))
}

impl Found {
    /// The context that is used, if it was not chosen.
    pub(crate) fn current_context(&self) -> Option<&str> {
        self.kubeconfig.current_context.as_deref().filter(|name| !name.is_empty())
    }

    pub(crate) fn contexts(&self) -> Vec<String> {
        self.kubeconfig.contexts.iter().map(|context| context.name.clone()).collect()
    }

    /// The credential plugin of a context.
    pub(crate) fn plugin(&self, context: &str) -> Option<&ExecConfig> {
        let context = self.kubeconfig.contexts.iter().find(|one| one.name == context)?;
        let user = context.context.as_ref()?.user.as_ref()?;
        let user = self.kubeconfig.auth_infos.iter().find(|one| one.name == *user)?;
        user.auth_info.as_ref()?.exec.as_ref()
    }
}

pub(crate) fn in_words(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(folder: &Path, name: &str, context: &str) -> PathBuf {
        let path = folder.join(name);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {context}\ncontexts:\n\
             - name: {context}\n  context: {{ cluster: c, user: u }}\n\
             users:\n- name: u\n  user: {{ exec: {{ command: a-plugin }} }}\n"
        );
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn files_are_chosen_as_kubectl_does() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, home] = ["a", "b", "home"].map(|name| write(folder.path(), name, name));
        let missing = folder.path().join("missing");
        let list = |paths: &[&PathBuf]| Some(env::join_paths(paths).unwrap());
        let read =
            |given: Option<&Path>, list| read_of(given, list, Some(home.clone())).unwrap().unwrap();
        assert_eq!(read(Some(&a), list(&[&b])).contexts(), ["a"]);
        let both = read(None, list(&[&b, &missing, &a]));
        assert_eq!(
            (both.contexts(), both.current_context()),
            (vec!["b".into(), "a".into()], Some("b"))
        );
        assert_eq!(both.plugin("b").unwrap().command.as_deref(), Some("a-plugin"));
        for none in [None, Some(OsString::new())] {
            assert_eq!(read(None, none).contexts(), ["home"]);
        }
        let absent = read_of(Some(&missing), None, Some(home.clone()));
        assert!(matches!(absent, Err(NotRead::Missing(files)) if files == [missing.clone()]));
        assert!(matches!(read_of(None, list(&[&missing]), Some(home)), Err(NotRead::Missing(_))));
        assert!(read_of(None, None, Some(missing)).unwrap().is_none(), "a pod has none");
    }

    #[test]
    fn the_file_that_is_broken_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let good = write(folder.path(), "good", "a");
        let broken = folder.path().join("broken");
        fs::write(&broken, "contexts: [").unwrap();
        let list = Some(env::join_paths([&good, &broken]).unwrap());
        let error = read_of(None, list, None).unwrap_err();
        assert!(matches!(error, NotRead::Invalid(file, _) if file == broken.display().to_string()));
    }
}
