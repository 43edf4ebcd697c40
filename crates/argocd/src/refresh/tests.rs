use super::*;

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn all_are_slow_until_one_that_was_asked_for_later_ends() {
    let refreshes = Refreshes::new();
    let first = refreshes.begin("first").await.unwrap();
    let second = refreshes.begin("second").await.unwrap();
    let third = refreshes.begin("third").await.unwrap();
    wait(50).await;
    let all = [&first, &second, &third];
    assert!(all.iter().all(|refresh| !refresh.is_missed()), "nobody is being refreshed");
    second.succeeded();
    assert!(first.is_missed());
    assert!(!third.is_missed(), "it was not its turn yet");
}

#[tokio::test(start_paused = true)]
async fn the_same_app_does_not_overtake_itself_and_nobody_waits_for_what_has_failed() {
    let refreshes = Refreshes::new();
    let first = refreshes.begin("a").await.unwrap();
    refreshes.begin("a").await.unwrap().succeeded();
    drop(refreshes.begin("b").await.unwrap());
    wait(14).await;
    assert!(!first.is_missed());
    wait(1).await;
    assert!(first.is_missed(), "it is alone");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_compares_others_has_missed_a_refresh_that_is_alone() {
    let refreshes = Refreshes::new();
    refreshes.compared("b", Some(Stamp(1)));
    let refresh = refreshes.begin("a").await.unwrap();
    // What is seen for the first time, or again, or of itself, tells nothing.
    for (app, at) in [("b", 1), ("c", 1), ("a", 1), ("a", 2)] {
        refreshes.compared(app, Some(Stamp(at)));
    }
    wait(6).await;
    assert!(!refresh.is_missed());
    refreshes.compared("b", Some(Stamp(2)));
    assert!(refresh.is_missed());
}

#[tokio::test(start_paused = true)]
async fn only_so_many_are_unfinished() {
    let refreshes = Refreshes::new();
    let mut unfinished = Vec::new();
    for number in 0..AT_ONCE {
        unfinished.push(refreshes.begin(&number.to_string()).await.unwrap());
    }
    let refused = refreshes.begin("one more").await.err().unwrap();
    assert!(matches!(refused, CallError::Unanswered { .. }), "{refused}");
    unfinished.pop();
    assert!(refreshes.begin("one more").await.is_ok());
}
