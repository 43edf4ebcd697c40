//! Asking programs, Ansible's Python and its collections for their versions.

use futures::future::{BoxFuture, FutureExt};
use tiphys_assess::preflight::Findings;
use tiphys_assess::preflight::tools::{
    ANSIBLE, COLLECTIONS, Needs, PACKAGES, PACKAGES_SCRIPT, Ran, TOOLS, Tool, collection,
    interpreter, judge_collections, judge_packages, judge_tool, package, tool,
};

use super::command::said;

/// One look for each program, so that none waits for another.
pub(super) fn looks(needs: Needs<'_>) -> Vec<BoxFuture<'_, Findings>> {
    let own = [ansible(needs).boxed(), collections(needs).boxed()];
    let rest = TOOLS.into_iter().filter(|tool| *tool != ANSIBLE);
    own.into_iter().chain(rest.map(|tool| look(needs, tool).boxed())).collect()
}

async fn look(needs: Needs<'_>, wanted: Tool) -> Findings {
    let check = if let Some(why) = needs.spare_tool(&wanted) {
        tool(&wanted).skipped(why)
    } else {
        judge_tool(&wanted, &said(wanted.name, wanted.args).await)
    };
    Findings { checks: vec![check], ..Findings::default() }
}

/// Ansible, and the packages of the Python that it says is its own.
async fn ansible(needs: Needs<'_>) -> Findings {
    let mut checks = Vec::new();
    if let Some(why) = needs.spare_ansible() {
        checks.push(tool(&ANSIBLE).skipped(why));
        checks.extend(PACKAGES.map(|name| package(name).skipped(why)));
    } else {
        let ran = said(ANSIBLE.name, ANSIBLE.args).await;
        checks.push(judge_tool(&ANSIBLE, &ran));
        checks.extend(judge_packages(&packages(&ran).await));
    }
    Findings { checks, ..Findings::default() }
}

async fn packages(ansible: &Ran) -> Ran {
    let Ran::Said(text) = ansible else {
        return Ran::Failed("unknown without ansible-playbook".to_owned());
    };
    let Some(python) = interpreter(text) else {
        return Ran::Failed("ansible-playbook does not report its Python interpreter".to_owned());
    };
    let args: Vec<&str> = ["-c", PACKAGES_SCRIPT].into_iter().chain(PACKAGES).collect();
    said(python, &args).await
}

async fn collections(needs: Needs<'_>) -> Findings {
    let checks = if let Some(why) = needs.spare_ansible() {
        COLLECTIONS.map(|(name, minimum)| collection(name, minimum).skipped(why)).into()
    } else {
        let list = ["collection", "list", "--format", "json"];
        judge_collections(&said("ansible-galaxy", &list).await)
    };
    Findings { checks, ..Findings::default() }
}
