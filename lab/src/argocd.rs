//! Argo CD, from the manifests inside its own module, with images made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::image::{Image, write_layer};
use crate::{command, containers};

const NAMESPACE: &str = "argocd";
const MODULE: &str = "github.com/argoproj/argo-cd/v3";
/// What its programs are called; all are one binary.
const PROGRAMS: [&str; 9] = [
    "argocd-server",
    "argocd-repo-server",
    "argocd-cmp-server",
    "argocd-application-controller",
    "argocd-dex",
    "argocd-notifications",
    "argocd-applicationset-controller",
    "argocd-k8s-auth",
    "argocd-commit-server",
];
/// Debian packages that Argo CD calls, and Redis, which it keeps its cache in.
const PACKAGES: &str = "git,gpg,gpg-agent,tini,ca-certificates,openssh-client,redis-server";

impl Cluster {
    /// Installs Argo CD, and waits until all of it is ready.
    pub fn install_argocd(&self) -> Result<(), LabError> {
        self.artifacts().build(&["argocd"], self.teller())?;
        let source = self.artifacts().source("argocd", MODULE)?;
        let path = source.join("manifests/install.yaml");
        let manifests =
            fs::read_to_string(&path).map_err(LabError::file("could not read", &path))?;
        self.load_argocd_images(&manifests, &source)?;
        self.tell("installing Argo CD");
        self.apply(
            "argocd-namespace",
            &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n"),
        )?;
        // There is no registry to pull from.
        let manifests =
            manifests.replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent");
        self.apply_in(Some(NAMESPACE), "argocd", &manifests)?;
        let patience = Duration::from_secs(180);
        self.wait_for(NAMESPACE, "statefulset/argocd-application-controller", patience)?;
        for name in ["redis", "repo-server", "server", "applicationset-controller"] {
            self.wait_for(NAMESPACE, &format!("deployment/argocd-{name}"), patience)?;
        }
        Ok(())
    }

    /// Makes images for every name in the manifests, from what is installed here.
    fn load_argocd_images(&self, manifests: &str, source: &Path) -> Result<(), LabError> {
        let named = |part: &str| {
            let images = manifests.lines().filter_map(|line| line.trim().strip_prefix("image: "));
            let mut found: Vec<&str> = images.filter(|image| image.contains(part)).collect();
            found.dedup();
            found.first().map(|image| (*image).to_owned())
        };
        let missing =
            |part: &str| LabError::Other(format!("the manifests name no image of {part}"));
        let argocd = named("/argocd:").ok_or_else(|| missing("Argo CD"))?;
        let dex = named("/dex:").ok_or_else(|| missing("Dex"))?;
        let redis = named("/redis:").ok_or_else(|| missing("Redis"))?;
        if containers::has(self.home(), &argocd)? && containers::has(self.home(), &redis)? {
            return Ok(());
        }
        self.tell("making the images of Argo CD");
        let base = self.debian_layer()?;
        let folder = self.home().make("images")?;
        let bin = "usr/local/bin";
        let mut image = Image::new(&argocd)
            .also(&dex)
            .layer(&base)
            .user("999")
            .environment("USER", "argocd")
            .environment("HOME", "/home/argocd")
            .environment("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .entrypoint(&["/usr/bin/tini", "--"])
            .folder("app/config/gpg/keys", 0o777)
            .folder("app/config/gpg/source", 0o777)
            .folder("app/config/ssh", 0o755)
            .folder("app/config/tls", 0o755)
            .folder("home/argocd", 0o777)
            .file(&format!("{bin}/argocd"), &self.artifacts().binary("argocd")?, 0o755)
            .file(&format!("{bin}/entrypoint.sh"), &source.join("entrypoint.sh"), 0o755)
            .file(&format!("{bin}/gpg-wrapper.sh"), &source.join("hack/gpg-wrapper.sh"), 0o755)
            .file(
                &format!("{bin}/git-verify-wrapper.sh"),
                &source.join("hack/git-verify-wrapper.sh"),
                0o755,
            );
        for tool in ["helm", "kustomize"] {
            image = image.file(&format!("{bin}/{tool}"), &self.artifacts().binary(tool)?, 0o755);
        }
        // Nobody logs in through Dex here. Argo CD only looks whether there is one, and then waits
        // to be told what for.
        image = image.link(&format!("{bin}/dex"), "/bin/true");
        for program in PROGRAMS {
            image = image.link(&format!("{bin}/{program}"), "argocd");
        }
        self.load_image(&image, &folder.join("argocd.tar"))?;
        let redis =
            Image::new(&redis).layer(&base).user("999").entrypoint(&["/usr/bin/redis-server"]);
        self.load_image(&redis, &folder.join("redis.tar"))
    }

    /// A small Debian as a layer, from the cache if it was made before.
    fn debian_layer(&self) -> Result<PathBuf, LabError> {
        let layer = self.artifacts().cached("debian-bookworm.tar");
        if layer.exists() {
            return Ok(layer);
        }
        let folder = self.home().path("debian");
        let made = folder.exists().then(|| fs::remove_dir_all(&folder));
        made.transpose().map_err(LabError::file("could not remove", &folder))?;
        let mut debootstrap = Command::new("debootstrap");
        debootstrap
            .args(["--variant=minbase", &format!("--include={PACKAGES}"), "bookworm"])
            .arg(&folder);
        command::run(&mut debootstrap)?;
        for unused in [
            "var/cache/apt",
            "var/lib/apt/lists",
            "usr/share/doc",
            "usr/share/man",
            "usr/share/locale",
        ] {
            let path = folder.join(unused);
            fs::remove_dir_all(&path).map_err(LabError::file("could not remove", &path))?;
        }
        write_layer(&folder, &layer)?;
        fs::remove_dir_all(&folder).map_err(LabError::file("could not remove", &folder))?;
        Ok(layer)
    }
}
