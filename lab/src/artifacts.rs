//! Programs built from Go modules, and images made from them, cached by what they are made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::LabError;
use crate::home::Home;
use crate::mended::Mended;
use crate::workflows::WorkflowsVersion;
use tiphys_image::short_digest;

/// A Go module of the lab, and what is built from it.
struct Module {
    folder: &'static str,
    /// Name of the binary, package that it is built from.
    binaries: &'static [(&'static str, &'static str)],
    /// Flags for the linker: upstream's own release builds set versions this way.
    ldflags: &'static str,
    /// Build tags of what needs C; the others are static, so that images need no libraries.
    with_c: Option<&'static str>,
}

const MODULES: [Module; 13] = [
    Module { folder: "pause", binaries: &[("pause", ".")], ldflags: "-s -w", with_c: None },
    Module {
        folder: "etcd",
        binaries: &[("etcd", "go.etcd.io/etcd/server/v3")],
        ldflags: "-s -w",
        with_c: None,
    },
    Module {
        folder: "kubernetes",
        binaries: &[("kubernetes", ".")],
        ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4 \
            -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=34",
        with_c: None,
    },
    Module {
        folder: "tools",
        binaries: &[
            ("coredns", "github.com/coredns/coredns"),
            ("helm", "helm.sh/helm/v3/cmd/helm"),
            ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
        ],
        ldflags: "-s -w",
        with_c: None,
    },
    Module {
        folder: "argocd",
        binaries: &[("argocd", "github.com/argoproj/argo-cd/v3/cmd")],
        ldflags: "-s -w -X github.com/argoproj/argo-cd/v3/common.version=3.2.6",
        with_c: None,
    },
    Module {
        folder: "argocd-3.5",
        binaries: &[("argocd-3.5", "github.com/argoproj/argo-cd/v3/cmd")],
        ldflags: "-s -w -X github.com/argoproj/argo-cd/v3/common.version=3.5.6",
        with_c: None,
    },
    Module {
        folder: "workflows",
        binaries: &[
            (
                "workflow-controller",
                "github.com/argoproj/argo-workflows/v3/cmd/workflow-controller",
            ),
            ("argoexec", "github.com/argoproj/argo-workflows/v3/cmd/argoexec"),
            ("argo", "github.com/argoproj/argo-workflows/v3/cmd/argo"),
        ],
        // The controller starts the executor image of its own version.
        ldflags: "-s -w -X github.com/argoproj/argo-workflows/v3.version=v3.7.14 \
            -X github.com/argoproj/argo-workflows/v3.gitTag=v3.7.14 \
            -X github.com/argoproj/argo-workflows/v3.gitCommit=ca37b537cd34d18029146a755bf42a9b2364c49b \
            -X github.com/argoproj/argo-workflows/v3.gitTreeState=clean",
        with_c: None,
    },
    Module {
        folder: "workflows-4.0",
        binaries: &[
            (
                "workflow-controller-4.0",
                "github.com/argoproj/argo-workflows/v4/cmd/workflow-controller",
            ),
            ("argoexec-4.0", "github.com/argoproj/argo-workflows/v4/cmd/argoexec"),
            ("argo-4.0", "github.com/argoproj/argo-workflows/v4/cmd/argo"),
        ],
        ldflags: "-s -w -X github.com/argoproj/argo-workflows/v4.version=v4.0.7 \
            -X github.com/argoproj/argo-workflows/v4.gitTag=v4.0.7 \
            -X github.com/argoproj/argo-workflows/v4.gitCommit=9aeb47ce10339f4a14819335c6a00027353ba0df \
            -X github.com/argoproj/argo-workflows/v4.gitTreeState=clean",
        with_c: None,
    },
    Module {
        folder: "events",
        binaries: &[("argo-events", "github.com/argoproj/argo-events/cmd")],
        ldflags: "-s -w -X github.com/argoproj/argo-events.version=v1.9.10",
        with_c: None,
    },
    Module {
        folder: "nats",
        binaries: &[("nats-server", "github.com/nats-io/nats-server/v2")],
        ldflags: "-s -w",
        with_c: None,
    },
    Module {
        folder: "commands",
        binaries: &[
            ("kubeseal", "github.com/bitnami-labs/sealed-secrets/cmd/kubeseal"),
            ("yq", "github.com/mikefarah/yq/v4"),
        ],
        ldflags: "-s -w -X main.VERSION=0.36.0",
        with_c: None,
    },
    Module { folder: "registry", binaries: &[("registry", ".")], ldflags: "-s -w", with_c: None },
    Module {
        folder: "gitea",
        binaries: &[("gitea", "code.gitea.io/gitea")],
        ldflags: "-s -w -X main.Version=1.25.2",
        // Its database.
        with_c: Some("sqlite sqlite_unlock_notify"),
    },
];

/// The Kubernetes programs that are one binary under several names.
const KUBERNETES: [&str; 6] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
];

/// Everything that is built, by name.
#[derive(Debug, Clone)]
pub(crate) struct Artifacts {
    modules: PathBuf,
    cache: PathBuf,
}

impl Artifacts {
    /// The modules lie beside this crate's manifest, wherever the clone is.
    pub(crate) fn new(home: &Home) -> Self {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules");
        Artifacts { modules, cache: home.cache().to_owned() }
    }

    pub(crate) fn modules(&self) -> &Path {
        &self.modules
    }

    /// Builds what is missing of the named modules; tells what it does.
    pub(crate) fn build(&self, folders: &[&str], say: &dyn Fn(&str)) -> Result<(), LabError> {
        for module in MODULES.iter().filter(|module| folders.contains(&module.folder)) {
            let mut missing = Vec::new();
            for (binary, package) in module.binaries {
                let target = self.target(module, binary)?;
                if !target.exists() {
                    missing.push((binary, package, target));
                }
            }
            if missing.is_empty() {
                continue;
            }
            let mended = self.mended(module)?;
            let folder = self.modules.join(module.folder);
            let folder = mended.as_ref().map_or(folder.as_path(), Mended::folder);
            for (binary, package, target) in missing {
                say(&format!("building {binary} (minutes the first time)"));
                self.build_one(folder, module, package, &target)?;
            }
        }
        if folders.contains(&"kubernetes") {
            self.link_kubernetes()?;
        }
        Ok(())
    }

    /// A module that cannot be built where it is, in a place where it can.
    fn mended(&self, module: &Module) -> Result<Option<Mended>, LabError> {
        let mut workflows = WorkflowsVersion::ALL.into_iter();
        let Some(version) = workflows.find(|version| version.folder() == module.folder) else {
            return Ok(None);
        };
        let source = self.source(module.folder, version.module())?;
        let folder = self.modules.join(module.folder);
        Mended::make(&folder, version.module(), &source, &self.cache).map(Some)
    }

    fn build_one(
        &self,
        folder: &Path,
        module: &Module,
        package: &str,
        target: &Path,
    ) -> Result<(), LabError> {
        let parent = target.parent().unwrap_or(&self.cache);
        fs::create_dir_all(parent).map_err(LabError::file("could not make the folder", parent))?;
        // Built beside its place and moved there whole: a build that is killed leaves no half.
        let half = target.with_extension("half");
        let mut build = Command::new("go");
        build
            .current_dir(folder)
            .args([
                "build",
                "-trimpath",
                "-mod=readonly",
                "-buildvcs=false",
                "-ldflags",
                module.ldflags,
            ])
            .arg("-o")
            .arg(&half)
            .args(module.with_c.map(|tags| format!("-tags={tags}")))
            .arg(package)
            .env("CGO_ENABLED", if module.with_c.is_some() { "1" } else { "0" });
        command::run(&mut build)?;
        fs::rename(&half, target).map_err(LabError::file("could not move", target))
    }

    /// The file of a binary.
    pub(crate) fn binary(&self, name: &str) -> Result<PathBuf, LabError> {
        if KUBERNETES.contains(&name) {
            return Ok(self.kubernetes_folder()?.join(name));
        }
        let module = MODULES.iter().find(|m| m.binaries.iter().any(|(binary, _)| *binary == name));
        let module = module.ok_or_else(|| LabError::Other(format!("no module builds {name}")))?;
        self.target(module, name)
    }

    fn target(&self, module: &Module, binary: &str) -> Result<PathBuf, LabError> {
        let key = self.key(module)?;
        Ok(self.cache.join("bin").join(format!("{}-{key}", module.folder)).join(binary))
    }

    fn kubernetes_folder(&self) -> Result<PathBuf, LabError> {
        let module = &MODULES[2];
        let target = self.target(module, "kubernetes")?;
        Ok(target.parent().map_or_else(|| self.cache.clone(), Path::to_owned))
    }

    fn link_kubernetes(&self) -> Result<(), LabError> {
        let folder = self.kubernetes_folder()?;
        for name in KUBERNETES {
            let link = folder.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink("kubernetes", &link)
                    .map_err(LabError::file("could not link", &link))?;
            }
        }
        Ok(())
    }

    /// What a module is made of, as a few digits: its files and its flags.
    fn key(&self, module: &Module) -> Result<String, LabError> {
        let mut parts = Vec::new();
        for file in ["go.mod", "go.sum", "main.go"] {
            let path = self.modules.join(module.folder).join(file);
            if path.exists() {
                parts.extend(fs::read(&path).map_err(LabError::file("could not read", &path))?);
            }
        }
        parts.extend(module.ldflags.as_bytes());
        parts.extend(module.with_c.unwrap_or_default().as_bytes());
        Ok(short_digest(&parts))
    }

    /// The folder in which Go keeps the source of a module.
    pub(crate) fn source(&self, folder: &str, module: &str) -> Result<PathBuf, LabError> {
        // It is there after a build, but what was built may come from the cache.
        self.go(folder, &["mod", "download", module])?;
        self.go(folder, &["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module])
            .map(PathBuf::from)
    }

    /// The version of a module, such as v3.2.6.
    pub(crate) fn version(&self, folder: &str, module: &str) -> Result<String, LabError> {
        self.go(folder, &["list", "-mod=readonly", "-m", "-f", "{{.Version}}", module])
    }

    fn go(&self, folder: &str, words: &[&str]) -> Result<String, LabError> {
        let mut go = Command::new("go");
        go.current_dir(self.modules.join(folder)).args(words);
        Ok(command::run(&mut go)?.trim().to_owned())
    }

    pub(crate) fn cached(&self, name: &str) -> PathBuf {
        self.cache.join(name)
    }
}
