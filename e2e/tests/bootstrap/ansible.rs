//! Both installers come to the same end.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use tiphys_e2e::inventory::difference;
use tiphys_e2e::{Ground, figure};
use tiphys_lab::{Cluster, Home};

use crate::kills::look_at_ours;
use crate::start::{Said, Start, look};

/// As `PATH` has it for this test, beside the lab's tools, and with a home of its own.
async fn with_ansible(start: &Start, mut command: Command) -> Said {
    let tools = Cluster::new(Home::from_environment(), |_| ()).tools().expect("tools");
    let path = format!("{}:{}", tools.display(), env::var("PATH").expect("a PATH"));
    command.env("PATH", path).env("HOME", start.path("."));
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("nobody cancels it").expect("it can be started");
    Said::of(&output, &["ansible"], 0)
}

/// What the playbook would do, by itself.
async fn check(ground: &Ground, start: &Start) -> String {
    let rendered = start.run(ground, &["bootstrap", "--render", "-o", "json"], 0).await;
    let file = start.path("rendered.json");
    fs::write(&file, rendered.stdout).expect("a file");
    let playbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ansible/bootstrap.yml");
    let mut command = Command::new("ansible-playbook");
    command
        .args(["-i", "localhost,", "--check"])
        .arg(playbook)
        .args(["-e", &format!("rendered={}", file.display())])
        .env("K8S_AUTH_KUBECONFIG", &ground.kubeconfig);
    with_ansible(start, command).await.stdout
}

/// Needs `ansible-playbook` and what its collections need.
pub(crate) async fn comes_to_the_same_end(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    start.run(&ground, &["bootstrap", "--allow-uncommitted"], 0).await;
    let native = look_at_ours(&ground).await;
    start.run(&ground, &["teardown", "--yes"], 0).await;

    let said = check(&ground, &start).await;
    assert!(said.contains("changed=") && !said.contains("changed=0"), "{said}");
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
    let action = ["bootstrap", "--installer", "ansible", "--allow-uncommitted"];
    let said = with_ansible(&start, start.command(&ground, &action)).await;
    assert!(said.stderr.contains("PLAY RECAP"), "Ansible has done it: {}", said.stderr);
    let with_ansible = look_at_ours(&ground).await;
    assert_eq!(difference(&native, &with_ansible), Vec::<String>::new());
    figure(&format!("{} objects, the same with both installers", with_ansible.len()));
    let said = check(&ground, &start).await;
    assert!(said.contains("changed=0"), "{said}");
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}
