//! The samples in the README and the docs: platform files are valid, commands are understood, and what
//! the README says that a command prints is what it prints.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block of a page.
struct Block {
    /// The page and the line, for people.
    place: String,
    /// The first word of its info string: the others say where its commands are run.
    language: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let docs = root().join("docs");
    let mut pages = vec![root().join("README.md")];
    for folder in [docs.clone(), docs.join("operations")] {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.file_name().unwrap().to_string_lossy().into_owned();
    let mut blocks: Vec<Block> = Vec::new();
    // The indentation of the fence that is open.
    let mut open: Option<usize> = None;
    for (index, line) in text.lines().enumerate() {
        let indentation = line.len() - line.trim_start().len();
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(info), None) => {
                let place = format!("{name}:{}", index + 1);
                let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                blocks.push(Block { place, language, text: String::new() });
                open = Some(indentation);
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(indentation)) => {
                let block = blocks.last_mut().unwrap();
                block.text += line.get(indentation..).unwrap_or_default();
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of {name} never ends");
    blocks
}

fn all_blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks(page)).collect()
}

/// What the program did: its exit code, and what it printed.
struct Ran {
    code: Option<i32>,
    printed: String,
}

fn run(directory: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    let output = command.env_clear().current_dir(directory).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let printed = text(output.stdout) + &text(output.stderr);
    Ran { code: output.status.code(), printed: format!("$ tiphys {}\n{printed}", args.join(" ")) }
}

/// A part of a platform file, with the rest around it.
fn completed(part: &str) -> String {
    let head = "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: { name: sample }\n";
    let stacks = "  stacks: [{ name: s, apps: [{ name: a }] }]\n";
    format!("{head}{part}{}", if part.contains("  stacks:") { "" } else { stacks })
}

#[test]
fn platform_files_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for Block { place, language, text } in all_blocks() {
        let begins = |what: &str| text.lines().any(|line| line.starts_with(what));
        let text = match language.as_str() {
            "yaml" if begins("apiVersion: tiphys.dev/") => text,
            "yaml" if begins("spec:") && !begins("apiVersion:") => completed(&text),
            _ => continue,
        };
        let sum = "0".repeat(64);
        let text = text
            .replace("\"…\"", &format!("\"{sum}\""))
            .replace("https://…", "https://example.org")
            .replace("      …\n", "      AAAA\n");
        fs::write(directory.path().join("p.yaml"), text).unwrap();
        let ran = run(directory.path(), &["plan", "-f", "p.yaml"]);
        assert_eq!(ran.code, Some(0), "{place}: {}", ran.printed);
        checked += 1;
    }
    assert!(checked >= 10, "{checked}");
}

#[test]
fn the_starter_is_valid_and_its_root_app_creates_its_apps() {
    let starter = root().join("examples/starter");
    let ran = run(&starter, &["plan"]);
    assert_eq!(ran.code, Some(0), "{}", ran.printed);
    let entries = fs::read_dir(starter.join("apps")).unwrap();
    let apps = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let apps: BTreeSet<String> = apps.collect();
    for app in &apps {
        assert!(ran.printed.contains(&format!(" {app} ")), "{app}: {}", ran.printed);
    }
    let values = fs::read_to_string(starter.join("root/values.yaml")).unwrap();
    let listed = values.lines().find_map(|line| line.strip_prefix("apps: [")?.strip_suffix(']'));
    let listed: BTreeSet<String> = listed.unwrap().split(", ").map(str::to_owned).collect();
    assert_eq!(listed, apps);
}

/// The arguments of a command in a line of a shell block, if it is one of ours.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.split(['|', '>', '&', ';']).next().unwrap_or_default().trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let given =
        line.strip_prefix("tiphys ").or_else(|| line.strip_prefix("cargo run --release -- "))?;
    Some(given.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect())
}

/// The command of a step in a file of a pipeline.
fn pipeline_command(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("- ");
    line.strip_prefix("run: ").or_else(|| line.strip_prefix("script: "))
}

#[test]
fn commands_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for Block { place, language, text } in all_blocks() {
        let commands: Vec<&str> = match language.as_str() {
            "sh" => text.lines().collect(),
            // Pipelines.
            "yaml" => text.lines().filter_map(pipeline_command).collect(),
            _ => continue,
        };
        for mut args in commands.into_iter().filter_map(arguments) {
            // Whatever is not understood before is an error all the same.
            args.push("--help".to_owned());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran = run(directory.path(), &args);
            assert_eq!(ran.code, Some(0), "{place}: {}", ran.printed);
            checked += 1;
        }
    }
    assert!(checked >= 30, "{checked}");
}

/// The variables between backticks at the beginning of the rows of a table, or in helps.
fn variables(text: &str, before: &str, after: char) -> BTreeSet<String> {
    let found = text.split(before).skip(1).filter_map(|rest| rest.split(after).next());
    found.filter(|name| name.starts_with("TIPHYS_")).map(str::to_owned).collect()
}

#[test]
fn the_table_of_variables_is_that_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| run(directory.path(), args).printed;
    let page = fs::read_to_string(root().join("docs/command-line.md")).unwrap();
    let (_, rest) = page.split_once("| variable | flag |").unwrap();
    let shown = variables(rest.split("\n\n").next().unwrap(), "| `", '`');
    let help = run(&["--help"]);
    let actions = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let actions = actions.lines().filter_map(|line| line.split_whitespace().next());
    // Without line breaks of a narrow terminal.
    let helps: String = actions.map(|action| run(&["help", action])).collect();
    let helps = helps.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(shown, variables(&helps, "[env: ", ']'));
}

fn readme() -> Vec<Block> {
    blocks(&root().join("README.md"))
}

#[test]
fn the_commands_that_the_readme_offers_without_a_cluster_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut codes = Vec::new();
    for block in readme().iter().filter(|block| block.language == "sh") {
        for line in block.text.lines().filter(|line| line.starts_with("cargo run")) {
            let args = arguments(line).unwrap();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            codes.push(run(directory.path(), &args).code);
        }
    }
    // One of them has an app that fails.
    assert_eq!(codes, [Some(0), Some(1), Some(0), Some(0), Some(0)]);
}

#[test]
fn the_small_platform_of_the_readme_works_as_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let blocks = readme();
    let small = blocks.iter().find(|block| block.text.contains("metadata: { name: small }"));
    fs::write(directory.path().join("small.yaml"), &small.unwrap().text).unwrap();
    let offered = blocks.iter().flat_map(|block| block.text.lines());
    let offered = offered.filter(|line| line.contains("-f small.yaml")).filter_map(arguments);
    let mut runs = 0;
    for args in offered {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = run(directory.path(), &args);
        assert_eq!(ran.code, Some(0), "{}", ran.printed);
        runs += 1;
    }
    assert_eq!(runs, 3);
}

#[test]
fn what_the_readme_shows_is_what_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let cycle = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: x }
spec:
  stacks:
    - name: s
      apps:
        - {name: a, dependsOn: [b]}
        - {name: b, dependsOn: [a]}
";
    fs::write(directory.path().join("x.yaml"), cycle).unwrap();
    let plan = run(directory.path(), &["plan"]).printed;
    let problem = run(directory.path(), &["plan", "-f", "x.yaml"]).printed;
    let blocks = readme();
    for (begins, printed) in [("reference  platform", plan), ("error: two apps", problem)] {
        let block = blocks.iter().find(|block| block.text.starts_with(begins)).unwrap();
        let shown = block.text.split('…').next().unwrap();
        assert!(printed.contains(shown), "{shown}\n{printed}");
    }
}

/// The text of a page without its fenced blocks.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    text.split("```").step_by(2).collect()
}

/// As GitHub makes an anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading.chars().filter(kept).collect::<String>().replace(' ', "-")
}

fn anchors(page: &Path) -> Vec<String> {
    prose(page).lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        let prose = prose(&page);
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, at) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(target.exists(), "{}: {link} does not exist", page.display());
            let known = at.is_empty() || anchors(&target).iter().any(|anchor| anchor == at);
            assert!(known, "{}: {link} has no such heading", page.display());
            checked += 1;
        }
    }
    assert!(checked >= 200, "{checked}");
}
