//! The other installer: Ansible applies the same objects in the same order, with the same waits.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use tiphys_cluster::{Access, ClusterError, Kind};
use tiphys_install::bootstrap::{Adoption, Stage};

use super::write_stages;

/// The playbook, as the project has it.
const FILES: [(&str, &str); 2] = [
    ("bootstrap.yml", include_str!("../../../../../ansible/bootstrap.yml")),
    ("stage.yml", include_str!("../../../../../ansible/stage.yml")),
];

/// Runs the playbook; what it says goes to stderr.
pub(super) async fn run(
    access: &Access,
    stages: &[Stage],
    adoption: Adoption,
    timeout: Duration,
) -> Result<(), ClusterError> {
    let failed =
        |why: String| ClusterError::new(Kind::Failed, "the playbook has not come to its end", why);
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text).map_err(|error| failed(error.to_string()))?;
    }
    let rendered = folder.path().join("rendered.json");
    let mut document = Vec::new();
    write_stages(&mut document, stages)
        .and_then(|()| fs::write(&rendered, document))
        .map_err(|error| failed(error.to_string()))?;
    let mut playbook = tokio::process::Command::new("ansible-playbook");
    playbook
        .current_dir(folder.path())
        .args(["-i", "localhost,", "bootstrap.yml"])
        .args(["-e", &format!("rendered={}", rendered.display())])
        .args(["-e", &format!("patience={}", timeout.as_secs())])
        .args(["-e", &format!("take_fields={}", adoption == Adoption::Allowed)])
        .stdin(Stdio::null())
        // Data goes to stdout, and this is none.
        .stdout(std::io::stderr())
        .kill_on_drop(true);
    if let Some(kubeconfig) = &access.kubeconfig {
        playbook.env("K8S_AUTH_KUBECONFIG", kubeconfig);
    }
    if let Some(context) = &access.context {
        playbook.env("K8S_AUTH_CONTEXT", context);
    }
    let status = playbook.status().await.map_err(|error| {
        let what = "ansible-playbook cannot be run";
        ClusterError::new(Kind::Configuration, what, error.to_string()).hint(
            "install what `tiphys preflight --strict` names, or use `--installer native`, which \
             needs nothing",
        )
    })?;
    if status.success() {
        return Ok(());
    }
    Err(failed(format!("it ended with {status}"))
        .hint("see what it says above, correct it, and run this again"))
}
