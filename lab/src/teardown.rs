//! Taking a lab down, and sweeping up after one that died.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::{OPTIONAL, PROCESSES};
use crate::command;
use crate::containers::BRIDGE;
use crate::error::LabError;
use crate::home::Home;
use crate::process::Process;

/// Folders that parts of a cluster make, whatever they are told.
const OUTSIDE: [&str; 8] = [
    "/run/containerd",
    "/run/netns",
    "/run/sshd",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];
const ABSENT_BEFORE: &str = "run/absent-before";

/// Notes, once, which of them are not there before the lab is.
pub(crate) fn remember_outside(home: &Home) -> Result<(), LabError> {
    if home.path(ABSENT_BEFORE).exists() {
        return Ok(());
    }
    let absent: Vec<&str> =
        OUTSIDE.into_iter().filter(|folder| !Path::new(folder).exists()).collect();
    home.write(ABSENT_BEFORE, absent.join("\n")).map(|_| ())
}

fn remove_outside(home: &Home) -> Result<(), LabError> {
    let absent = fs::read_to_string(home.path(ABSENT_BEFORE)).unwrap_or_default();
    // Only what is in the list of today can have been written by a lab.
    for folder in OUTSIDE.iter().filter(|folder| absent.lines().any(|line| line == **folder)) {
        for mount in mounts(Path::new(folder)) {
            unmount(&mount)?;
        }
        if Path::new(folder).exists() {
            fs::remove_dir_all(folder).map_err(LabError::file("could not remove", *folder))?;
        }
    }
    Ok(())
}

/// Ends all processes of the lab, in reverse order, and removes everything but the cache.
pub(crate) fn down(home: &Home) -> Result<(), LabError> {
    for name in OPTIONAL {
        Process::new(home, name).stop()?;
    }
    for (name, _) in PROCESSES.iter().rev() {
        // containerd goes after its containers: it knows them best.
        if *name != "containerd" {
            Process::new(home, name).stop()?;
        }
    }
    sweep(home)?;
    Process::new(home, "containerd").stop()?;
    sweep(home)?;
    remove_rules()?;
    remove_outside(home)?;
    if home.path("run/ip_forward.before").exists() {
        let forward = "/proc/sys/net/ipv4/ip_forward";
        fs::write(forward, "0\n").map_err(LabError::file("could not restore", forward))?;
    }
    match fs::remove_dir_all(home.folder()) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(LabError::File {
            doing: "could not remove",
            path: home.folder().to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Ends containers and Git sessions that nobody looks after, and removes mounts and interfaces.
/// They are known by the folder of this lab, in which their files lie.
pub(crate) fn sweep(home: &Home) -> Result<(), LabError> {
    for _ in 0..50 {
        let left = left_behind(home.folder());
        if left.is_empty() {
            break;
        }
        for pid in left {
            command::output(Command::new("kill").args(["-KILL", &pid.to_string()]))?;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for namespace in network_namespaces() {
        command::output(Command::new("ip").args(["netns", "delete", &namespace]))?;
    }
    for mount in mounts(home.folder()) {
        unmount(&mount)?;
    }
    if Path::new("/sys/class/net").join(BRIDGE).exists() {
        command::run(Command::new("ip").args(["link", "delete", BRIDGE]))?;
    }
    Ok(())
}

/// Processes whose files lie in the folder: shims and Git sessions, by their command line, and
/// containers, by the root that they see.
fn left_behind(folder: &Path) -> Vec<u32> {
    let folder = folder.display().to_string();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let read =
                |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let shim =
                read("comm").trim() == "containerd-shim" && read("cmdline").contains(&folder);
            let root = read("mountinfo").lines().next().unwrap_or_default().to_owned();
            let container = root.split_whitespace().nth(4) == Some("/") && root.contains(&folder);
            shim || container || is_git_session(&read("cmdline"), &folder)
        })
        .collect()
}

/// Whether a command line is the far end of a clone, fetch or push. It outlives the Git server
/// for as long as its client wants; without it, the rest of the connection ends by itself.
fn is_git_session(command_line: &str, folder: &str) -> bool {
    let words: Vec<&str> = command_line.split('\0').collect();
    let far_end = |word: &&str| ["upload-pack", "receive-pack", "upload-archive"].contains(word);
    words.first() == Some(&"git")
        && words.get(1).is_some_and(far_end)
        && words.get(2).is_some_and(|path| path.starts_with(&format!("{folder}/git/")))
}

/// Removes a mount. Whoever made it may be removing it at the same time.
fn unmount(mount: &str) -> Result<(), LabError> {
    let removed = command::run(Command::new("umount").args(["-l", mount]));
    let gone = || !mounts(Path::new("/")).iter().any(|point| point == mount);
    match removed {
        Err(_) if gone() => Ok(()),
        removed => removed.map(|_| ()),
    }
}

/// What is mounted below the folder, the innermost first.
fn mounts(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let prefix = format!("{}/", folder.display()).replace("//", "/");
    let points = table.lines().filter_map(|line| line.split_whitespace().nth(4));
    let mut points: Vec<String> =
        points.filter(|point| point.starts_with(&prefix)).map(str::to_owned).collect();
    points.reverse();
    points
}

/// The network namespaces that the container runtime has made.
fn network_namespaces() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("cni-")).collect()
}

/// Removes the chains of kubelet, kube-proxy and the network plugins, and every rule that
/// leads into one; all others stay as they are.
fn remove_rules() -> Result<(), LabError> {
    for family in ["iptables", "ip6tables"] {
        let saved = match command::run(&mut Command::new(format!("{family}-save"))) {
            // On a machine that has never had a lab. Without the program, there are no rules of one.
            Err(LabError::Start { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
            saved => saved?,
        };
        let kept: String =
            saved.lines().filter(|line| !is_ours(line)).map(|l| format!("{l}\n")).collect();
        if kept.lines().count() == saved.lines().count() {
            continue;
        }
        let mut restore = Command::new(format!("{family}-restore"));
        let mut child = restore
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|source| LabError::Start { command: command::said(&restore), source })?;
        if let Some(mut input) = child.stdin.take() {
            input
                .write_all(kept.as_bytes())
                .map_err(LabError::file("could not write", "iptables"))?;
        }
        let status = child.wait().map_err(LabError::file("could not wait for", "iptables"))?;
        if !status.success() {
            return Err(LabError::Other(format!("{family}-restore failed with {status}")));
        }
    }
    Ok(())
}

fn is_ours(line: &str) -> bool {
    let chain = |word: &str| word.starts_with("KUBE-") || word.starts_with("CNI-");
    line.split_whitespace().any(|word| chain(word.trim_start_matches(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_with_our_repositories_are_ended() {
        let ours = |words: &str| is_git_session(&words.replace(' ', "\0"), "/lab");
        assert!(ours("git upload-pack /lab/git/p.git"));
        assert!(!ours("git upload-pack /srv/git/p.git"));
        assert!(!ours("git clone ssh://root@10.0.0.1:12222/lab/git/p.git"));
        assert!(!ours("git -C /lab/git/p.git log"));
    }

    #[test]
    fn only_our_rules_are_removed() {
        let ours =
            [":KUBE-SERVICES - [0:0]", "-A PREROUTING -j KUBE-SERVICES", "-A CNI-abc -j ACCEPT"];
        let others = ["*nat", ":PREROUTING ACCEPT [0:0]", "-A INPUT -p tcp -j ACCEPT", "COMMIT"];
        assert!(ours.iter().all(|line| is_ours(line)));
        assert!(!others.iter().any(|line| is_ours(line)));
    }
}
