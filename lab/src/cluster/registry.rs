//! An OCI registry, for what is published as an artifact and for credentials that are tried.
//! The cluster does not pull from it: its images are loaded.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Cluster, host_address};
use crate::error::LabError;
use crate::home::Home;
use crate::{command, kubeconfig, ports};

const PORT: u16 = 15000;
pub(super) const PROCESS: &str = "registry";
const USER: &str = "lab";

/// Where the registry is, and who may use it.
#[derive(Debug, Clone)]
pub struct Registry {
    /// `address:port`, over TLS.
    pub address: String,
    pub user: String,
    /// A file with the password.
    pub password: PathBuf,
    /// Who has signed its certificate.
    pub authority: PathBuf,
}

impl Cluster {
    /// Starts the registry, beside a cluster that is up.
    pub fn start_registry(&self) -> Result<(), LabError> {
        self.artifacts.build(&["registry"], self.teller())?;
        let process = self.process(PROCESS);
        if !process.is_running() {
            ports::require_free(PORT)?;
        }
        self.tell("starting the registry");
        let address = host_address()?;
        if !self.home.path("registry/users").exists() {
            let password = self.home.write("registry/password", kubeconfig::random()?)?;
            let hashed = command::run(self.program(PROCESS)?.arg("hash").arg(password))?;
            self.home.write("registry/users", format!("{USER}:{hashed}"))?;
        }
        let config = self.home.write("registry/config.yaml", configuration(&self.home, address))?;
        self.home.write("registry/address", format!("{address}:{PORT}"))?;
        let mut registry = self.program(PROCESS)?;
        registry.arg("serve").arg(config);
        // It would tell its traces to a collector that is not there.
        registry.env("OTEL_TRACES_EXPORTER", "none");
        process.start(&mut registry)?;
        process.wait("the registry", Duration::from_secs(20), || {
            std::net::TcpStream::connect((address, PORT)).is_ok()
        })
    }

    /// The registry of this lab.
    pub fn registry(&self) -> Result<Registry, LabError> {
        let path = self.home.path("registry/address");
        let address = fs::read_to_string(&path).map_err(LabError::file(
            "there is no registry (`lab up --with registry` starts it); could not read",
            &path,
        ))?;
        Ok(Registry {
            address,
            user: USER.to_owned(),
            password: self.home.path("registry/password"),
            authority: self.home.path("pki/ca.crt"),
        })
    }
}

fn configuration(home: &Home, address: Ipv4Addr) -> String {
    format!(
        "\
version: 0.1
log: {{ accesslog: {{ disabled: false }} }}
storage:
  filesystem: {{ rootdirectory: {folder}/blobs }}
  delete: {{ enabled: true }}
http:
  addr: {address}:{PORT}
  tls: {{ certificate: {pki}/registry.crt, key: {pki}/registry.key }}
auth:
  htpasswd: {{ realm: tiphys-lab, path: {folder}/users }}
",
        folder = home.path("registry").display(),
        pki = home.path("pki").display(),
    )
}
