//! What a bootstrap installs, ready for it: images that the cluster knows, manifests as files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::argocd::ArgoCdVersion;
use crate::cluster::Cluster;
use crate::error::LabError;
use crate::workflows::WorkflowsVersion;
use crate::{containers, manifests};
use tiphys_image::Image;

/// A NATS server for an event bus. No manifest names it: an exotic bus only has an address.
pub const NATS_IMAGE: &str = "tiphys.lab/nats:2.12.1";
const EVENTS_MODULE: &str = "github.com/argoproj/argo-events";
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
        let events = self.artifacts().source("events", EVENTS_MODULE)?;
        let events = read(&events.join("manifests/install.yaml"))?;
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

    fn load_events_images(&self, manifests: &str) -> Result<(), LabError> {
        let events = manifests::image(manifests, "/argo-events:")?;
        // Sensors submit workflows with `argo`.
        self.load_program(&events, ROOT, &[("argo-events", "argo-events"), ("argo", "argo")])?;
        self.load_program(NATS_IMAGE, ROOT, &[("nats-server", "nats-server")])
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

fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(LabError::file("could not read", path))
}
