//! A file that is nested too deep is refused at the level that is too deep, in every style.

use crate::yaml::sources;

const DEEPEST: usize = 64;

/// What is wrong with a text, and at which byte.
fn problem(text: &str) -> (String, usize) {
    let problems = tiphys_spec::platform(&sources(&[text])).unwrap_err().into_sorted();
    (problems[0].title.clone(), problems[0].primary.span.start as usize)
}

#[test]
fn the_level_that_is_too_deep_is_the_place() {
    let too_deep = "the file is nested deeper than 64 levels";
    for (opener, levels) in
        [("[", 1), ("[\n", 1), ("{a: ", 1), ("{? ", 1), ("[{a: ", 2), ("- ", 1), ("? - ", 2)]
    {
        let deepest = opener.repeat(DEEPEST / levels);
        // Far more than the scanner looks ahead, so that it cannot see an end that is missing.
        for behind in ["[".repeat(20_000), opener.repeat(20_000)] {
            let found = problem(&format!("{deepest}{behind}"));
            assert_eq!(found, (too_deep.to_owned(), deepest.len()), "{opener:?}");
        }
    }
}

#[test]
fn flow_style_within_block_style_counts_both() {
    let block: String = (0..10).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let text = format!("{block}{}{}", " ".repeat(10), "[".repeat(20_000));
    let (title, at) = problem(&text);
    assert_eq!(title, "the file is nested deeper than 64 levels");
    assert_eq!(at, block.len() + 10 + DEEPEST - 10);
}

#[test]
fn the_deepest_level_is_not_too_deep() {
    let text = format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
    assert_eq!(problem(&text).0, "expected a platform (an object), found a list");
}
