//! The page for people who begin, run from its text: what it says is what works.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use tiphys_e2e::inventory::difference;
use tiphys_e2e::{Ground, figure, tiphys};
use tiphys_lab::Home;

use crate::start::look;

const PAGE: &str = include_str!("../../../docs/getting-started.md");
/// What stands before a block whose commands are for everybody, and for people in the lab.
const RUN_HERE: [&str; 2] = ["sh", "sh lab"];
/// For people with a cluster and a repository of their own.
const RUN_ELSEWHERE: &str = "sh elsewhere";
/// As many as the page has at least; a page that has lost them would pass.
const FEWEST_BLOCKS: usize = 14;
/// The repository that the page makes.
const REPOSITORY: &str = "my-platform.git";
/// Stands alone on a line before what a block prints.
const MARK: &str = "--- the next block of the page";
const APPS: [&str; 6] = ["api", "cache", "database", "quotas", "settings", "web"];

pub(crate) async fn works_from_its_text(ground: Arc<Ground>) {
    let blocks = blocks(PAGE);
    assert!(blocks.len() >= FEWEST_BLOCKS, "{blocks:#?}");
    let folder = tempfile::tempdir().expect("a folder");
    let before = look(&ground).await;

    let began = Instant::now();
    let mut bash = bash(&ground, folder.path(), &blocks);
    let run = move || bash.output().expect("bash can be started");
    let output = tokio::task::spawn_blocking(run).await.expect("nobody cancels it");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");

    let by_block: Vec<&str> = printed.split(&format!("{MARK}\n")).skip(1).collect();
    assert_eq!(by_block.len(), blocks.len(), "{printed}");
    let runs = blocks.iter().zip(&by_block).filter(|(block, _)| deploys(block));
    let applied: Vec<Vec<&str>> = runs.map(|(_, printed)| applied(printed)).collect();
    assert_eq!(applied, [APPS.to_vec(), vec!["web"]], "{printed}");
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
    let commands: usize = blocks.iter().map(|block| block.lines().count()).sum();
    let seconds = began.elapsed().as_secs();
    figure(&format!("getting started: {commands} commands of the page in {seconds} s"));
}

/// The blocks of the page that are run here, in its order.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(info), None) => {
                let here = RUN_HERE.contains(&info);
                let shell = info.split_whitespace().next() == Some("sh");
                assert!(here || !shell || info == RUN_ELSEWHERE, "who runs `{info}`?");
                if here {
                    blocks.push(String::new());
                }
                open = Some(info);
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(info)) if RUN_HERE.contains(&info) => {
                let block = blocks.last_mut().expect("the block that is open");
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

/// One shell for all blocks, in a folder that looks like a clone, and with nothing of the caller's
/// environment but what the lab sets.
fn bash(ground: &Ground, folder: &Path, blocks: &[String]) -> Command {
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let examples = clone.join("examples").canonicalize().expect("the examples");
    symlink(examples, folder.join("examples")).expect("a link");
    let bin = folder.join("bin");
    fs::create_dir(&bin).expect("a folder");
    let program = tiphys::binary().canonicalize().expect("the program");
    symlink(program, bin.join("tiphys")).expect("a link");

    // What is left of the last time would refuse the push.
    let repositories = ground.git.folder().expect("the page uses the Git server of the lab");
    let repository = repositories.join(REPOSITORY);
    if repository.exists() {
        fs::remove_dir_all(&repository).expect("the repository of the last time");
    }

    // One stream for all that is printed, so that it is in order.
    let mut script = "set -euo pipefail\nexec 2>&1\n".to_owned();
    script += "trap 'echo \"failed: $BASH_COMMAND\"' ERR\n";
    for block in blocks {
        write!(script, "echo '{MARK}'\n{block}").expect("a text can be written");
    }
    let file = folder.join("page.sh");
    fs::write(&file, script).expect("the script");

    let mut bash = Command::new("bash");
    bash.arg(&file).current_dir(folder).stdin(Stdio::null());
    bash.env_clear().env("PATH", path(bin)).env("HOME", folder);
    bash.env("KUBECONFIG", &ground.kubeconfig);
    bash.env("TIPHYS_LAB_MANIFESTS", Home::from_environment().manifests());
    bash.env("TIPHYS_LAB_GIT", &ground.git.prefix);
    bash.env("TIPHYS_LAB_GIT_KEY", &ground.git.key);
    bash.env("TIPHYS_LAB_GIT_KNOWN_HOSTS", &ground.git.known_hosts);
    bash.env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        bash.env(format!("GIT_{role}_NAME"), "Somebody new");
        bash.env(format!("GIT_{role}_EMAIL"), "new@example.org");
    }
    bash
}

/// The caller's, with the program before everything else.
fn path(bin: PathBuf) -> OsString {
    let others = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(bin).chain(env::split_paths(&others));
    env::join_paths(all).expect("a PATH")
}

fn deploys(block: &str) -> bool {
    block.lines().any(|line| line.starts_with("tiphys deploy"))
}

/// The apps that a run has synced, by name.
fn applied(printed: &str) -> Vec<&str> {
    let done = printed.lines().filter_map(|line| line.split_once(" done applied "));
    let mut apps: Vec<&str> = done.filter_map(|(app, _)| app.split_whitespace().last()).collect();
    apps.sort_unstable();
    apps
}
