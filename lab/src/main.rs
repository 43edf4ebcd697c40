//! `lab`: a real cluster for contributors and CI.

mod addon;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use addon::Addon;
use clap::{Parser, Subcommand};
use tiphys_lab::{Cluster, Home, LabError};

/// A real Kubernetes with real Argo CD on this machine, for development
#[derive(Debug, Parser)]
#[command(name = "lab")]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build what is missing, start what is not running, wait until it is ready
    Up {
        /// Add this as well
        #[arg(long)]
        with: Vec<Addon>,
    },
    /// Stop everything and remove all but the cache
    Down,
    /// Show what is running; ends with 1 unless the cluster is ready
    Status,
    /// Print paths and addresses for a shell: eval "$(lab env)"
    Env,
    /// Build everything without starting it
    Build,
    /// Print a folder with command-line tools for the PATH; builds what is missing
    Tools,
    /// Make a container image from a tarball known to the cluster
    LoadImage { tarball: PathBuf },
    /// Show the end of the log of a part, or of all
    Logs { part: Option<String> },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let cluster = Cluster::new(Home::from_environment(), |text| say(&format!("lab: {text}\n")));
    match run(&cluster, args.action) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("lab: {error}\n"));
            let mut cause = std::error::Error::source(&error);
            while let Some(inner) = cause {
                say(&format!("lab:   because {inner}\n"));
                cause = inner.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cluster: &Cluster, action: Action) -> Result<ExitCode, LabError> {
    match action {
        Action::Up { with } => {
            cluster.up()?;
            for addon in with {
                match addon {
                    Addon::ArgoCd(version) => cluster.install_argocd(version)?,
                    Addon::Events => cluster.install_events()?,
                    Addon::Primitives => cluster.load_primitives()?,
                    Addon::Registry => cluster.start_registry()?,
                    Addon::Workflows(version) => cluster.install_workflows(version)?,
                }
            }
        }
        Action::Down => cluster.down()?,
        Action::Build => cluster.build()?,
        Action::Tools => print(&format!("{}\n", cluster.tools()?.display())),
        Action::LoadImage { tarball } => cluster.import_image(&tarball)?,
        Action::Env => {
            let home = cluster.home();
            print(&format!(
                "export KUBECONFIG={}\nexport TIPHYS_LAB_AUDIT_LOG={}\n\
                 export TIPHYS_LAB_MANIFESTS={}\n",
                home.kubeconfig().display(),
                home.audit_log().display(),
                home.manifests().display(),
            ));
            // There is an address only after the first `up`.
            if let Ok(git) = cluster.git_server() {
                print(&format!(
                    "export TIPHYS_LAB_GIT={}\nexport TIPHYS_LAB_GIT_KEY={}\n\
                     export TIPHYS_LAB_GIT_KNOWN_HOSTS={}\n",
                    git.prefix,
                    git.key.display(),
                    git.known_hosts.display(),
                ));
            }
            if let Ok(registry) = cluster.registry() {
                print(&format!(
                    "export TIPHYS_LAB_REGISTRY={}\nexport TIPHYS_LAB_REGISTRY_USER={}\n\
                     export TIPHYS_LAB_REGISTRY_PASSWORD_FILE={}\n\
                     export TIPHYS_LAB_REGISTRY_CA={}\n",
                    registry.address,
                    registry.user,
                    registry.password.display(),
                    registry.authority.display(),
                ));
            }
        }
        Action::Status => {
            let status = cluster.status();
            for (name, pid) in &status.processes {
                let state = pid.map_or("stopped".to_owned(), |pid| format!("running, pid {pid}"));
                print(&format!("{name:<24} {state}\n"));
            }
            print(if status.ready { "ready\n" } else { "not ready\n" });
            return Ok(if status.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Action::Logs { part } => {
            let home = cluster.home();
            let all = || cluster.status().processes.into_iter().map(|(name, _)| name.to_owned());
            for name in part.map_or_else(|| all().collect(), |part| vec![part]) {
                print(&format!("--- {name}\n"));
                Command::new("tail")
                    .args(["-n", "30"])
                    .arg(home.log(&name))
                    .status()
                    .map_err(|source| LabError::Start { command: "tail".to_owned(), source })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap_or_default();
}

fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap_or_default();
}
