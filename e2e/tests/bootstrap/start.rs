//! A platform that says what it stands on, and credentials as they are mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tiphys_e2e::inventory::{Inventory, inventory};
use tiphys_e2e::{Ground, image, tiphys};
use tiphys_lab::git::Repository;
use tiphys_lab::repository::PlatformRepository;
use tiphys_lab::{Cluster, Home};

/// Files of a person who is about to begin.
pub(crate) struct Start {
    folder: tempfile::TempDir,
    pub(crate) platform: PlatformRepository,
}

/// The lab has images that no registry has, and Argo Events asks one for those of its own pods.
const EVENTS_PATCH: &str = "apiVersion: apps/v1\nkind: Deployment\n\
    metadata: { name: controller-manager }\n\
    spec: { template: { spec: { containers: [{ name: controller-manager, env: [\
    { name: IMAGE_PULL_POLICY, value: IfNotPresent }] }] } } }\n";

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/chart");
const PRIMITIVES: [(&str, &str); 4] =
    [("argocd", "3.2.6"), ("workflows", "3.7.14"), ("events", "1.9.10"), ("tiphys", "0.1.0")];

impl Start {
    /// The reference platform; each app is Healthy after a second.
    pub(crate) async fn reference(ground: &Ground, name: &str) -> Self {
        let repository = Repository::create(&ground.git, name).expect("a repository");
        let after = Duration::from_secs(1);
        let platform =
            PlatformRepository::reference(&repository.url(), &format!("{name}-"), |_| after)
                .expect("the reference platform");
        repository.commit(&platform.files(), "the reference platform").expect("a commit");
        let start = Start { folder: tempfile::tempdir().expect("a folder"), platform };
        let git = start.path("credentials/git");
        fs::create_dir_all(&git).expect("a folder");
        fs::copy(&ground.git.key, git.join("ssh-privatekey")).expect("the key");
        fs::copy(&ground.git.known_hosts, git.join("known_hosts")).expect("the host keys");
        for (primitive, _) in PRIMITIVES {
            let file = format!("{primitive}.yaml");
            if primitive == "tiphys" {
                fs::write(start.path(&file), rendered_chart().await).expect("manifests");
                continue;
            }
            let manifests = Home::from_environment().manifests();
            fs::copy(manifests.join(&file), start.path(&file))
                .expect("manifests: start the lab with `lab up --with primitives`");
        }
        fs::write(start.path("events-patch.yaml"), EVENTS_PATCH).expect("patches");
        start.write(|text| text);
        start
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the platform file with pins of the manifests as they are now, and a change.
    pub(crate) fn write(&self, change: impl FnOnce(String) -> String) {
        let text = self.platform.files().remove("platform.yaml").expect("a platform file");
        let pins: String = PRIMITIVES
            .iter()
            .map(|(name, version)| {
                let checksum = checksum(&self.path(&format!("{name}.yaml")));
                let patches = match *name {
                    "events" => "      patches: events-patch.yaml\n",
                    _ => "",
                };
                format!(
                    "    {name}:\n      version: {version}\n      \
                     manifests: {{ path: {name}.yaml, sha256: \"{checksum}\" }}\n{patches}"
                )
            })
            .collect();
        let bootstrap = format!("spec:\n  bootstrap:\n    timeout: 3m\n{pins}");
        let text = text.replacen("spec:\n", &bootstrap, 1);
        fs::write(self.path("platform.yaml"), change(text)).expect("the platform file");
    }

    fn arguments(&self, action: &[&str]) -> Vec<String> {
        let (file, credentials) = (self.path("platform.yaml"), self.path("credentials"));
        let mut all: Vec<String> = action.iter().map(|word| (*word).to_owned()).collect();
        all.extend(["-f".to_owned(), file.display().to_string()]);
        if ["bootstrap", "deploy"].contains(&action[0]) {
            all.extend(["--credentials".to_owned(), credentials.display().to_string()]);
        }
        all
    }

    /// Runs an action with the platform file and the credentials; what it has said.
    pub(crate) async fn run(&self, ground: &Ground, action: &[&str], code: i32) -> Said {
        let arguments = self.arguments(action);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = tiphys::run(&words, &ground.kubeconfig).await;
        Said::of(&output, action, code)
    }

    /// An action that is not started yet.
    pub(crate) fn command(&self, ground: &Ground, action: &[&str]) -> Command {
        let arguments = self.arguments(action);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tiphys::command(&words, &ground.kubeconfig)
    }

    /// Starts an action and does not wait for it.
    pub(crate) fn begin(&self, ground: &Ground, action: &[&str]) -> Child {
        let mut command = self.command(ground, action);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program can be started")
    }
}

/// Our own chart, as its users render it.
async fn rendered_chart() -> Vec<u8> {
    let (repository, tag) = image::executor().await.rsplit_once(':').expect("a tag");
    let values = format!("image.repository={repository},image.tag={tag},image.pullPolicy=Never");
    let mut helm = Cluster::new(Home::from_environment(), |_| {}).helm().expect("the lab has helm");
    helm.args(["template", "tiphys", CHART, "-n", "tiphys-system", "--set", &values]);
    let output = helm.output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// What an action has said.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn of(output: &Output, action: &[&str], code: i32) -> Self {
        let (found, stdout, stderr) = tiphys::said(output);
        assert_eq!(found, Some(code), "{action:?}\n{stderr}\n{stdout}");
        Said { stdout, stderr }
    }
}

/// The objects of what `--render -o json` prints.
pub(crate) fn objects(rendered: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(rendered).expect("a document");
    let stages = document["stages"].as_array().expect("stages").iter();
    stages.flat_map(|stage| stage["objects"].as_array().expect("objects").clone()).collect()
}

pub(crate) fn checksum(file: &Path) -> String {
    let bytes = fs::read(file).expect("manifests");
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything in the cluster.
pub(crate) async fn look(ground: &Ground) -> Inventory {
    inventory(&ground.client).await.expect("an inventory")
}
