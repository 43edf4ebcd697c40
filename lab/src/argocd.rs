//! Argo CD, from the manifests inside its own module, with images made here.

mod version;

pub use version::ArgoCdVersion;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::LabError;
use crate::{command, containers, manifests};
use tiphys_image::{Image, short_digest, write_layer};

const NAMESPACE: &str = "argocd";
pub(crate) const MODULE: &str = "github.com/argoproj/argo-cd/v3";
const CONTROLLER: &str = "statefulset/argocd-application-controller";
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
/// Argo CD runs as this user, and SSH refuses to be run by one that it cannot look up.
const USER: &str = "argocd:x:999:999::/home/argocd:/bin/sh\n";

impl Cluster {
    /// Installs Argo CD, and waits until all of it is ready. An Argo CD of another version is left
    /// alone, and is an error.
    pub fn install_argocd(&self, version: ArgoCdVersion) -> Result<(), LabError> {
        let wanted = self.artifacts().version(version.folder(), MODULE)?;
        if let Some(installed) = self.argocd_tag()?.filter(|installed| *installed != wanted) {
            return Err(LabError::Other(format!(
                "Argo CD {installed} is installed, not {wanted}: run `lab down` first"
            )));
        }
        self.artifacts().build(&[version.folder()], self.teller())?;
        let manifests = self.argocd_manifests(version, "install.yaml")?;
        self.load_argocd_images(version, &manifests)?;
        self.tell("installing Argo CD");
        self.apply(
            "argocd-namespace",
            &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n"),
        )?;
        let manifests = manifests::without_pulling(&manifests);
        // Before its pods start, so that none of them has to be told to read it again.
        let hosts = self.git_server()?.known_hosts;
        let hosts = fs::read_to_string(&hosts).map_err(LabError::file("could not read", &hosts))?;
        let manifests = with_known_hosts(&manifests, &hosts)?;
        self.apply_in(Some(NAMESPACE), "argocd", &manifests)?;
        let patience = Duration::from_secs(180);
        self.wait_for(NAMESPACE, CONTROLLER, patience)?;
        for name in ["redis", "repo-server", "server", "applicationset-controller"] {
            self.wait_for(NAMESPACE, &format!("deployment/argocd-{name}"), patience)?;
        }
        Ok(())
    }

    /// The version of the Argo CD that is installed, by its image.
    fn argocd_tag(&self) -> Result<Option<String>, LabError> {
        self.image_tag(NAMESPACE, CONTROLLER)
    }

    /// Manifests as they are in Argo CD's own module.
    pub(crate) fn argocd_manifests(
        &self,
        version: ArgoCdVersion,
        file: &str,
    ) -> Result<String, LabError> {
        let source = self.artifacts().source(version.folder(), MODULE)?;
        let path = source.join("manifests").join(file);
        fs::read_to_string(&path).map_err(LabError::file("could not read", &path))
    }

    /// Makes images for every name in the manifests, from what is installed here.
    pub(crate) fn load_argocd_images(
        &self,
        version: ArgoCdVersion,
        manifests: &str,
    ) -> Result<(), LabError> {
        let argocd = manifests::image(manifests, "/argocd:")?;
        let dex = manifests::image(manifests, "/dex:")?;
        let redis = manifests::image(manifests, "/redis:")?;
        if containers::has(self.home(), &argocd)? && containers::has(self.home(), &redis)? {
            return Ok(());
        }
        self.tell("loading the images of Argo CD");
        let base = self.debian_layer()?;
        let source = self.artifacts().source(version.folder(), MODULE)?;
        let binary = self.artifacts().binary(version.folder())?;
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
            .file(&format!("{bin}/argocd"), &binary, 0o755)
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
        self.load_cached_image("argocd", &image)?;
        let redis =
            Image::new(&redis).layer(&base).user("999").entrypoint(&["/usr/bin/redis-server"]);
        self.load_cached_image("redis", &redis)
    }

    /// Makes an image known that is large and seldom changes: written once, then kept in the cache.
    fn load_cached_image(&self, name: &str, image: &Image) -> Result<(), LabError> {
        let tarball = self.artifacts().cached(&format!("images/{name}-{}.tar", image.key()));
        if tarball.exists() {
            return self.import_image(&tarball);
        }
        let folder = self.artifacts().cached("images");
        fs::create_dir_all(&folder)
            .map_err(LabError::file("could not make the folder", &folder))?;
        self.load_image(image, &tarball)
    }

    /// A small Debian as a layer, from the cache if it was made before.
    fn debian_layer(&self) -> Result<PathBuf, LabError> {
        let key = short_digest(format!("{PACKAGES}\n{USER}").as_bytes());
        let layer = self.artifacts().cached(&format!("debian-bookworm-{key}.tar"));
        if layer.exists() {
            return Ok(layer);
        }
        self.tell("making a small Debian (a minute the first time)");
        let folder = self.home().path("debian");
        let made = folder.exists().then(|| fs::remove_dir_all(&folder));
        made.transpose().map_err(LabError::file("could not remove", &folder))?;
        let mut debootstrap = Command::new("debootstrap");
        debootstrap
            .args(["--variant=minbase", &format!("--include={PACKAGES}"), "bookworm"])
            .arg(&folder);
        command::run(&mut debootstrap)?;
        let users = folder.join("etc/passwd");
        fs::OpenOptions::new()
            .append(true)
            .open(&users)
            .and_then(|mut file| file.write_all(USER.as_bytes()))
            .map_err(LabError::file("could not add a user to", &users))?;
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

/// Adds host keys to those that Argo CD trusts, so that it can verify the lab's Git server.
fn with_known_hosts(manifests: &str, hosts: &str) -> Result<String, LabError> {
    const FIELD: &str = "\n  ssh_known_hosts: |\n";
    let (before, after) = manifests.split_once(FIELD).ok_or_else(|| {
        LabError::Other("the manifests have no argocd-ssh-known-hosts-cm to add to".to_owned())
    })?;
    let lines: String = hosts.lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("{before}{FIELD}{lines}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keys_are_added_to_the_config_map() {
        let manifests = "data:\n  ssh_known_hosts: |\n    github.com ssh-rsa A\nkind: ConfigMap\n";
        assert_eq!(
            with_known_hosts(manifests, "[10.0.0.1]:12222 ssh-ed25519 B\n").unwrap(),
            "data:\n  ssh_known_hosts: |\n    [10.0.0.1]:12222 ssh-ed25519 B\n    \
             github.com ssh-rsa A\nkind: ConfigMap\n"
        );
        assert!(with_known_hosts("kind: Pod\n", "").is_err());
    }
}
