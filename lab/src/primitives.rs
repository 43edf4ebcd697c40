//! What a bootstrap installs, ready for it: images that the cluster knows, manifests as files.

use std::fs;
use std::path::PathBuf;

use crate::argocd::ArgoCdVersion;
use crate::cluster::Cluster;
use crate::error::LabError;
use crate::workflows::WorkflowsVersion;
use crate::{containers, manifests};
use tiphys_image::Image;

pub(crate) const ROOT: &str = "0";

impl Cluster {
    /// Loads the images of Argo CD, Argo Workflows, Argo Events and NATS, and writes upstream's
    /// manifests. Installs nothing.
    pub fn load_primitives(&self) -> Result<(), LabError> {
        let version = ArgoCdVersion::default();
        let of_workflows = WorkflowsVersion::default();
        let folders = [version.folder(), of_workflows.folder(), "events", "nats"];
        self.artifacts().build(&folders, self.teller())?;
        let argocd = self.argocd_manifests(version, "install.yaml")?;
        let workflows = self.workflows_manifests(of_workflows)?;
        let events = self.events_manifests()?;
        self.load_argocd_images(version, &argocd)?;
        self.load_workflows_images(of_workflows, &workflows)?;
        self.load_events_images(&events)?;
        // Last: where they are, the images are.
        for (name, text) in [
            ("argocd", argocd),
            ("argocd-ha", self.argocd_manifests(version, "ha/install.yaml")?),
            ("workflows", workflows),
            ("events", events),
        ] {
            let file = format!("manifests/{name}.yaml");
            self.home().write(&file, manifests::without_pulling(&text))?;
        }
        Ok(())
    }

    /// The folder with the manifests that [`Cluster::load_primitives`] has written.
    pub fn manifests(&self) -> Result<PathBuf, LabError> {
        let folder = self.home().manifests();
        if folder.exists() {
            return Ok(folder);
        }
        Err(LabError::Other(format!(
            "there are no manifests in {}: run `lab up --with primitives`",
            folder.display()
        )))
    }

    /// Makes an image of static programs known, the first of which is run: each with its name in the image
    /// and that of the binary.
    pub(crate) fn load_program(
        &self,
        name: &str,
        user: &str,
        programs: &[(&str, &str)],
    ) -> Result<(), LabError> {
        if containers::has(self.home(), name)? {
            return Ok(());
        }
        self.tell(&format!("loading {name}"));
        let entry = programs.first().map(|(name, _)| format!("/bin/{name}")).unwrap_or_default();
        let mut image = Image::new(name)
            .user(user)
            .environment("PATH", "/bin")
            .entrypoint(&[&entry])
            .folder("tmp", 0o1777);
        for (name, binary) in programs {
            let file = self.artifacts().binary(binary)?;
            image = image.file(&format!("bin/{name}"), &file, 0o755);
        }
        let tarball = self.home().make("images")?.join("program.tar");
        self.load_image(&image, &tarball)?;
        // It is quickly written again, and as large as what is in it.
        fs::remove_file(&tarball).map_err(LabError::file("could not remove", &tarball))
    }
}
