//! Who starts, and when there is room.

use tiphys_model::Health;

use crate::platform::Builder;
use crate::run::Run;

#[test]
fn no_more_apps_are_in_progress_than_the_platform_allows() {
    let builder = Builder::new().concurrency(2).app("a", &[]).app("b", &[]).app("c", &[]);
    let mut run = Run::deploy(&builder.plan());
    assert_eq!(run.steps(), ["0s a syncing 1 at r1", "0s b syncing 1 at r1"]);
    run.sync("a");
    assert_eq!(run.steps(), ["0s a converging"], "converging takes room");
    run.assess("a", Health::Healthy);
    assert_eq!(run.steps(), ["0s a done: applied", "0s c syncing 1 at r1"]);
}

#[test]
fn a_pause_between_attempts_takes_room() {
    let builder = Builder::new().concurrency(1).app("a", &[]).retry(1, 10, 2, 30).app("b", &[]);
    let mut run = Run::deploy(&builder.plan());
    run.refuse("a");
    run.wait(10);
    run.refuse("a");
    assert_eq!(
        run.steps(),
        [
            "0s a syncing 1 at r1",
            "0s a retrying at 10s: the sync failed: denied",
            "10s a syncing 2 at r1",
            "10s a failed: the sync failed: denied",
            "10s b syncing 1 at r1",
        ]
    );
}

#[test]
fn a_full_group_holds_back_its_own_apps_only() {
    let builder =
        Builder::new().group_of(1).app("a", &[]).in_group().app("b", &[]).in_group().app("c", &[]);
    let mut run = Run::deploy(&builder.plan());
    assert_eq!(run.steps(), ["0s a syncing 1 at r1", "0s c syncing 1 at r1"]);
    run.complete("c");
    assert_eq!(run.steps(), ["0s c converging", "0s c done: applied"]);
    run.complete("a");
    assert_eq!(run.steps(), ["0s a converging", "0s a done: applied", "0s b syncing 1 at r1"]);
}

#[test]
fn the_longest_remaining_path_starts_first_and_then_the_name() {
    let builder = Builder::new()
        .concurrency(1)
        .app("a", &[])
        .app("b", &[])
        .app("c", &[])
        .app("d", &["c"])
        .typical(10);
    let mut run = Run::deploy(&builder.plan());
    for app in ["c", "a", "b", "d"] {
        run.complete(app);
    }
    let starts: Vec<String> =
        run.steps().into_iter().filter(|line| line.contains("syncing")).collect();
    assert_eq!(
        starts,
        [
            "0s c syncing 1 at r1",
            "0s a syncing 1 at r1",
            "0s b syncing 1 at r1",
            "0s d syncing 1 at r1",
        ]
    );
}
