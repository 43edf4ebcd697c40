//! Signals reach a whole process, so this test has one of its own.

use std::process::Command;

use tiphys_engine::Signals;
use tiphys_run::Signal;

#[tokio::test]
async fn a_terminal_that_goes_away_is_no_interrupt() {
    let mut signals = Signals::listen_in_run().expect("signals can be received");
    for name in ["-HUP", "-INT"] {
        let own = std::process::id().to_string();
        assert!(Command::new("kill").args([name, &own]).status().expect("a shell").success());
    }
    assert_eq!(signals.next().await, Signal::Interrupt);
}
