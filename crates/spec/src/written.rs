//! The text of a platform file.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tiphys_model::{NamespaceName, StackName};

use crate::document::{API_VERSION, AppDocument, DependencyDocument, KIND};
use crate::resolve::{Apps, DEFAULT_PROJECT, Head};

/// Writes what Applications can say: names, projects, namespaces, stacks, types and dependencies, sorted by
/// name, so that the order of their files does not show.
pub(crate) fn platform_file(head: &Head, apps: &Apps) -> String {
    let mut stacks: BTreeMap<&StackName, Vec<&AppDocument>> = BTreeMap::new();
    for (stack, app) in &apps.list {
        stacks.entry(stack).or_default().push(app);
    }
    let mut out = format!(
        "apiVersion: {API_VERSION}\nkind: {KIND}\nmetadata:\n  name: {}\nspec:\n",
        yaml_text(head.name.as_str())
    );
    let argocd = &head.argocd;
    let projects: Vec<&str> = argocd.projects.iter().map(String::as_str).collect();
    let projects = if projects == [DEFAULT_PROJECT] { Vec::new() } else { projects };
    let namespaces: Vec<&str> =
        argocd.application_namespaces.iter().map(NamespaceName::as_str).collect();
    if !projects.is_empty() || !namespaces.is_empty() {
        out += "  argocd:\n";
    }
    for (field, names) in [("projects", projects), ("applicationNamespaces", namespaces)] {
        if !names.is_empty() {
            out += &format!("    {field}:\n");
        }
        for name in names {
            out += &format!("      - {}\n", yaml_text(name));
        }
    }
    out += "  stacks:\n";
    for (stack, mut apps) in stacks {
        apps.sort_by_key(|app| &app.name.value);
        out += &format!("    - name: {}\n      apps:\n", yaml_text(stack.as_str()));
        for app in apps {
            write_app(app, &mut out);
        }
    }
    out
}

fn write_app(app: &AppDocument, out: &mut String) {
    *out += &format!("        - name: {}\n", yaml_text(app.name.value.as_str()));
    if let Some(app_type) = app.app_type {
        *out += &format!("          type: {}\n", app_type.as_str());
    }
    let mut dependencies: Vec<&DependencyDocument> = app.depends_on.items.iter().collect();
    dependencies.sort_by_key(|dependency| &dependency.app.value);
    if !dependencies.is_empty() {
        *out += "          dependsOn:\n";
    }
    for DependencyDocument { app, optional, .. } in dependencies {
        let name = yaml_text(app.value.as_str());
        let edge =
            if *optional { format!("{{ app: {name}, optional: true }}") } else { name.into() };
        *out += &format!("            - {edge}\n");
    }
}

/// A text in YAML. What begins with a lower-case letter is text to every YAML reader, but for a few
/// words; the rest may be a number or a date.
#[must_use]
pub fn yaml_text(text: &str) -> Cow<'_, str> {
    /// Also those that are truth values in YAML 1.1, which many tools still read.
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./:@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && text.chars().all(plain) && !text.ends_with(':') && !WORDS.contains(&text) {
        Cow::Borrowed(text)
    } else {
        // Every text of JSON is one of YAML.
        Cow::Owned(serde_json::Value::from(text).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_written_is_yaml() {
        for plain in ["main", "root/apps", "https://git.example/p.git", "git@host:a/b.git"] {
            assert_eq!(yaml_text(plain), plain);
        }
        for odd in ["1.0", "no", "a: b", "a #b", "", "{x}", "a\nb", "refs:"] {
            assert!(yaml_text(odd).starts_with('"'), "{odd}");
        }
    }
}
