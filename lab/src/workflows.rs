//! Argo Workflows.

mod version;

pub use version::WorkflowsVersion;

use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::primitives::ROOT;
use crate::{command, manifests};

const NAMESPACE: &str = "argo";
/// Whom its own images run as, all but the executor's.
const USER: &str = "8737";

/// What upstream's role lacks to tidy up after nodes that have ended. A bootstrap adds it to that role.
const NODES: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: argo-nodes}
rules: [{apiGroups: [argoproj.io], resources: [workflowtasksets/status], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: argo-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: argo-nodes}
subjects: [{kind: ServiceAccount, name: argo, namespace: argo}]
";

impl Cluster {
    /// Installs it for all namespaces and waits until its controller works. One of another version is
    /// left alone, and is an error.
    pub fn install_workflows(&self, version: WorkflowsVersion) -> Result<(), LabError> {
        let wanted = self.artifacts().version(version.folder(), version.module())?;
        if let Some(installed) = self.workflows_tag()?.filter(|installed| *installed != wanted) {
            return Err(LabError::Other(format!(
                "Argo Workflows {installed} is installed, not {wanted}: run `lab down` first"
            )));
        }
        self.artifacts().build(&[version.folder()], self.teller())?;
        let manifests = self.workflows_manifests(version)?;
        self.load_workflows_images(version, &manifests)?;
        self.tell("installing Argo Workflows");
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n");
        self.apply_in(None, "argo-namespace", &namespace)?;
        self.apply_in(Some(NAMESPACE), "workflows", &manifests::without_pulling(&manifests))?;
        self.apply_in(None, "workflows-nodes", NODES)?;
        // As a bootstrap does: a node that has ended is noticed after a second, not after ten.
        let mut hasten = self.kubectl()?;
        hasten.args(["-n", NAMESPACE, "set", "env", "deployment/workflow-controller"]);
        command::run(hasten.arg("DEFAULT_REQUEUE_TIME=1s"))?;
        self.wait_for(NAMESPACE, "deployment/workflow-controller", Duration::from_secs(180))
    }

    /// What upstream's release builds from its repository, in the same two steps.
    pub(crate) fn workflows_manifests(
        &self,
        version: WorkflowsVersion,
    ) -> Result<String, LabError> {
        let source = self.artifacts().source(version.folder(), version.module())?;
        let mut kustomize = Command::new(self.artifacts().binary("kustomize")?);
        kustomize.arg("build").arg(source.join("manifests/cluster-install"));
        let version = self.artifacts().version(version.folder(), version.module())?;
        Ok(command::run(&mut kustomize)?.replace(":latest", &format!(":{version}")))
    }

    /// `argo` for this lab, of the version that is installed.
    pub fn argo(&self) -> Result<Command, LabError> {
        let installed = self.workflows_tag()?;
        let is_installed = |version: &WorkflowsVersion| {
            let tag = self.artifacts().version(version.folder(), version.module());
            tag.ok() == installed
        };
        let version = WorkflowsVersion::ALL.into_iter().find(is_installed).unwrap_or_default();
        self.client(&version.binary("argo"))
    }

    /// The version that is installed, by its image.
    fn workflows_tag(&self) -> Result<Option<String>, LabError> {
        self.image_tag(NAMESPACE, "deployment/workflow-controller")
    }

    pub(crate) fn load_workflows_images(
        &self,
        version: WorkflowsVersion,
        manifests: &str,
    ) -> Result<(), LabError> {
        let controller = manifests::image(manifests, "/workflow-controller:")?;
        let server = manifests::image(manifests, "/argocli:")?;
        // The controller makes this name up from its own version.
        let executor = controller.replace("/workflow-controller:", "/argoexec:");
        for (image, user, program) in [
            (&controller, USER, "workflow-controller"),
            (&server, USER, "argo"),
            (&executor, ROOT, "argoexec"),
        ] {
            self.load_program(image, user, &[(program, &version.binary(program))])?;
        }
        Ok(())
    }
}
