//! Argo Workflows.

use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::primitives::ROOT;
use crate::{command, manifests, mended};

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
    /// Installs it for all namespaces and waits until its controller works.
    pub fn install_workflows(&self) -> Result<(), LabError> {
        self.artifacts().build(&["workflows"], self.teller())?;
        let manifests = self.workflows_manifests()?;
        self.load_workflows_images(&manifests)?;
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
    pub(crate) fn workflows_manifests(&self) -> Result<String, LabError> {
        let source = self.artifacts().source("workflows", mended::MODULE)?;
        let mut kustomize = Command::new(self.artifacts().binary("kustomize")?);
        kustomize.arg("build").arg(source.join("manifests/cluster-install"));
        let version = self.artifacts().version("workflows", mended::MODULE)?;
        Ok(command::run(&mut kustomize)?.replace(":latest", &format!(":{version}")))
    }

    pub(crate) fn load_workflows_images(&self, manifests: &str) -> Result<(), LabError> {
        let controller = manifests::image(manifests, "/workflow-controller:")?;
        let server = manifests::image(manifests, "/argocli:")?;
        // The controller makes this name up from its own version.
        let executor = controller.replace("/workflow-controller:", "/argoexec:");
        self.load_program(&controller, USER, &["workflow-controller"])?;
        self.load_program(&server, USER, &["argo"])?;
        self.load_program(&executor, ROOT, &["argoexec"])
    }
}
