//! Both installers come to the same end.

use std::env;
use std::sync::Arc;

use tiphys_e2e::inventory::difference;
use tiphys_e2e::{Ground, figure};

use crate::kills::look_at_ours;
use crate::start::{Start, look};

/// Needs `ansible-playbook` and what its collections need, as `PATH` has it for this test.
pub(crate) async fn comes_to_the_same_end(ground: Arc<Ground>) {
    let path = env::var("PATH").expect("a PATH");
    let start = Start::reference(&ground, "boot");
    let before = look(&ground).await;
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    let native = look_at_ours(&ground).await;
    start.run(&ground, &["teardown"], 0).await;

    let mut command = start.command(&ground, &["bootstrap", "--installer", "ansible", "--no-run"]);
    command.env("PATH", path).env("HOME", start.path("."));
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("nobody cancels it").expect("it can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("PLAY RECAP"), "Ansible has done it: {stderr}");
    let with_ansible = look_at_ours(&ground).await;
    assert_eq!(difference(&native, &with_ansible), Vec::<String>::new());
    figure(&format!("{} objects, the same with both installers", with_ansible.len()));
    start.run(&ground, &["teardown"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}
