//! Ports that the lab needs, and who holds one that is taken.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};

use crate::error::LabError;

/// Refuses a port that somebody listens on, naming who it is.
pub(crate) fn require_free(port: u16) -> Result<(), LabError> {
    if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
        return Ok(());
    }
    let holder = holder(port).unwrap_or_else(|| "another process".to_owned());
    Err(LabError::PortTaken { port, holder })
}

/// `name (pid 123)` of the process that listens on a port.
fn holder(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening(&table, port))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find_map(|pid| {
        let holds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().any(|fd| {
            let target = fs::read_link(fd.path()).unwrap_or_default();
            inodes.iter().any(|inode| target.as_os_str() == format!("socket:[{inode}]").as_str())
        });
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        holds.then(|| format!("{} (pid {pid})", name.trim()))
    })
}

/// The inodes of sockets that listen on a port, from a table of the kernel.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[3] == LISTEN)
        .filter(|row| row[1].rsplit_once(':').is_some_and(|(_, hex)| hex == format!("{port:04X}")))
        .map(|row| row[9].to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_its_holder() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = require_free(port).unwrap_err().to_string();
        let own = format!("(pid {})", std::process::id());
        assert!(error.contains(&port.to_string()) && error.contains(&own), "{error}");
        // Somebody else may take one as soon as it is free, but not every time.
        let given_back = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap().port()
        };
        assert!((0..10).any(|_| require_free(given_back()).is_ok()));
    }
}
