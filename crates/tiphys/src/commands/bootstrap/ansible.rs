//! The other installer: Ansible applies the same objects in the same order, with the same waits.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fs, io};

use tiphys_cluster::{Access, KubeconfigSource};
use tiphys_install::bootstrap::{Adoption, Stage};
use tiphys_model::{Exit, Explain, Explanation};

use super::write_stages;

/// The playbook, as the project has it.
const FILES: [(&str, &str); 2] = [
    ("bootstrap.yml", include_str!("../../../../../ansible/bootstrap.yml")),
    ("stage.yml", include_str!("../../../../../ansible/stage.yml")),
];

/// Why the playbook has not done its work.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub(super) enum AnsibleError {
    NotPrepared(#[from] io::Error),
    NotStarted(#[source] io::Error),
    Ended(ExitStatus),
}

impl Explain for AnsibleError {
    fn explain(&self) -> Explanation {
        let unfinished = |why| Explanation::new(Exit::Failed, "the playbook failed", why);
        match self {
            AnsibleError::NotPrepared(error) => unfinished(error.to_string()),
            AnsibleError::NotStarted(error) => Explanation::new(
                Exit::Configuration,
                "cannot run ansible-playbook",
                error.to_string(),
            )
            .hint(
                "install what `tiphys preflight --strict` names, or use `--installer native`, \
                 which needs nothing",
            ),
            AnsibleError::Ended(status) => unfinished(format!("it exited with {status}"))
                .hint("fix what its output above says, then run this again"),
        }
    }
}

/// Runs the playbook; what it says goes to stderr.
pub(super) async fn run(
    access: &Access,
    stages: &[Stage],
    adoption: Adoption,
    timeout: Duration,
) -> Result<(), AnsibleError> {
    let folder = tempfile::tempdir()?;
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text)?;
    }
    let rendered = folder.path().join("rendered.json");
    let mut document = Vec::new();
    write_stages(&mut document, stages)?;
    fs::write(&rendered, document)?;
    let mut playbook = tokio::process::Command::new("ansible-playbook");
    playbook
        .current_dir(folder.path())
        .args(["-i", "localhost,", "bootstrap.yml"])
        .args(["-e", &format!("rendered={}", rendered.display())])
        .args(["-e", &format!("patience={}", timeout.as_secs())])
        .args(["-e", &format!("take_fields={}", adoption == Adoption::Allowed)])
        .stdin(Stdio::null())
        // Data goes to stdout, and this is none.
        .stdout(io::stderr())
        .kill_on_drop(true);
    if let KubeconfigSource::Usual(Some(kubeconfig)) = &access.kubeconfig {
        playbook.env("K8S_AUTH_KUBECONFIG", kubeconfig);
    }
    if let Some(context) = &access.context {
        playbook.env("K8S_AUTH_CONTEXT", context);
    }
    let status = playbook.status().await.map_err(AnsibleError::NotStarted)?;
    if status.success() { Ok(()) } else { Err(AnsibleError::Ended(status)) }
}
