//! Comparing what was printed with what was printed before. The journeys of `e2e` use it too.

use std::fs;
use std::path::Path;

use snapbox::{Assert, Data};

/// Compares each transcript with `NAME.out` in a folder. A transcript without a file fails, and
/// so does a file without a transcript. `SNAPSHOTS=overwrite` accepts what was printed; then
/// read the difference before you commit it.
pub(crate) fn compare(folder: &Path, transcripts: &[(&str, &str)]) {
    // Raw: in other modes, a line of `...` (which our diagnostics contain) matches anything.
    let assert = Assert::new().action_env("SNAPSHOTS");
    let mut failures: Vec<String> = Vec::new();
    for (name, transcript) in transcripts {
        let expected = Data::read_from(&folder.join(format!("{name}.out")), None).raw();
        let actual = Data::text(*transcript);
        if let Err(difference) = assert.try_eq(Some(name), actual, expected) {
            failures.push(difference.to_string());
        }
    }
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("its entries are readable").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_compared = transcripts.iter().any(|(compared, _)| *compared == name);
        if path.extension().is_some_and(|end| end == "out") && !is_compared {
            failures.push(format!("nothing is compared with {name}.out"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
