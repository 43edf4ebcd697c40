//! What a first platform file is made of: answers of a person, or examples.

use std::fmt::Write;
use std::io;

use tiphys_model::{AppName, PlatformName};
use tiphys_spec::yaml_text;

use super::default_name;
use crate::failure::Failure;
use crate::output;

pub(super) struct Answers {
    name: PlatformName,
    /// `None`: the Applications exist already.
    root: Option<RootSource>,
    apps: Vec<(AppName, Vec<AppName>)>,
}

struct RootSource {
    repository: String,
    path: String,
    revision: String,
}

impl Answers {
    pub(super) fn example(name: Option<PlatformName>) -> Self {
        let app = |name: &str| AppName::parse(name).expect("the examples are valid names");
        let root = RootSource {
            repository: "https://git.example/platform.git".to_owned(),
            path: "root".to_owned(),
            revision: "main".to_owned(),
        };
        Answers {
            name: name.unwrap_or_else(default_name),
            root: Some(root),
            apps: vec![
                (app("storage"), Vec::new()),
                (app("database"), vec![app("storage")]),
                (app("web"), vec![app("database")]),
            ],
        }
    }

    /// Says what each field is for, and what else there is.
    pub(super) fn platform_file(&self) -> String {
        let mut text = format!(
            "# `tiphys plan` shows the order, `tiphys rehearse` tries it without a cluster.\n\
             # `tiphys schema` prints a JSON Schema for your editor.\n\
             apiVersion: {}\nkind: Platform\nmetadata:\n  name: {}\nspec:\n",
            tiphys_spec::API_VERSION,
            yaml_text(self.name.as_str()),
        );
        text += &match &self.root {
            Some(RootSource { repository, path, revision }) => format!(
                "  # The root app creates the Applications: a chart, a kustomization or a folder.\n  \
                 source:\n    repoURL: {}\n    path: {}\n    targetRevision: {}\n",
                yaml_text(repository),
                yaml_text(path),
                yaml_text(revision),
            ),
            None => {
                "  # Without `source`, the Applications exist already, and Tiphys creates none.\n"
                    .to_owned()
            }
        };
        text += "  # argocd:\n  #   namespace: argocd\n  #   projects: [platform]    # of the apps\n  \
                 # hold: during-run          # or `always`: only runs sync\n  \
                 # timeout: 3h               # of a whole run\n  stacks:\n    - name: apps\n      apps:\n";
        for (app, depends_on) in &self.apps {
            writeln!(text, "        - name: {}", yaml_text(app.as_str())).unwrap_or_default();
            if !depends_on.is_empty() {
                let names: Vec<_> =
                    depends_on.iter().map(|name| yaml_text(name.as_str())).collect();
                text += "          # These must be Healthy before it is synced.\n";
                writeln!(text, "          dependsOn: [{}]", names.join(", ")).unwrap_or_default();
            }
        }
        text
    }
}

/// Asks on the terminal; the file goes to stdout.
pub(super) fn ask(name: Option<PlatformName>) -> Result<Answers, Failure> {
    let name = match name {
        Some(name) => name,
        None => valid("Name of the platform", Some("platform"), PlatformName::parse)?
            .unwrap_or_else(default_name),
    };
    let repository =
        line("Git repository of the root app (empty: the Applications exist already)")?;
    let root = if repository.is_empty() {
        None
    } else {
        let or = |given: String, default: &str| {
            if given.is_empty() { default.to_owned() } else { given }
        };
        let path = or(line("Path in the repository [root]")?, "root");
        let revision = or(line("Branch or tag [main]")?, "main");
        Some(RootSource { repository, path, revision })
    };
    let mut apps = Vec::new();
    while let Some(app) = valid("App (empty to finish)", None, AppName::parse)? {
        let question = format!("{app} depends on (comma-separated, empty: nothing)");
        let depends_on = loop {
            let given = line(&question)?;
            let names = given.split(',').map(str::trim).filter(|name| !name.is_empty());
            match names.map(AppName::parse).collect::<Result<Vec<_>, _>>() {
                Ok(names) => break names,
                Err(error) => output::aside(&format!("  {error}\n")),
            }
        };
        apps.push((app, depends_on));
    }
    Ok(Answers { name, root, apps })
}

/// Asks until the answer is valid. `None`: it is empty, and there is no default.
fn valid<T, E: ToString>(
    question: &str,
    default: Option<&str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    let shown = default.map_or(question.to_owned(), |default| format!("{question} [{default}]"));
    loop {
        let given = line(&shown)?;
        let given = match (given.as_str(), default) {
            ("", None) => return Ok(None),
            ("", Some(default)) => default.to_owned(),
            _ => given,
        };
        match parse(&given) {
            Ok(value) => return Ok(Some(value)),
            Err(error) => output::aside(&format!("  {}\n", error.to_string())),
        }
    }
}

/// One answer. The end of the input is an empty one.
fn line(question: &str) -> Result<String, Failure> {
    output::aside(&format!("{question}: "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(Failure::Output)?;
    Ok(answer.trim().to_owned())
}
