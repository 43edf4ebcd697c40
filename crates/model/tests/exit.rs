//! Exit codes are a contract: these numbers never change.

use tiphys_model::Exit;

#[test]
fn every_exit_has_its_documented_number() {
    let codes = Exit::ALL.map(|exit| (exit, exit.code()));
    let documented = [
        (Exit::Done, 0),
        (Exit::Failed, 1),
        (Exit::Usage, 2),
        (Exit::Configuration, 3),
        (Exit::Credentials, 4),
        (Exit::NotFound, 5),
        (Exit::Unreachable, 6),
        (Exit::Deadline, 7),
        (Exit::Held, 8),
        (Exit::Interrupted, 130),
        (Exit::Terminated, 143),
    ];
    assert_eq!(codes, documented);
}
