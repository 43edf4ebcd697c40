//! Problems of files as annotations of a pipeline: a line for each, at its place.

use std::fmt::Write;

use tiphys_spec::{Diagnostics, Sources};

/// As GitHub Actions reads them: `::error file=…,line=…,col=…,title=…::…`.
#[must_use]
pub fn github_annotations(sources: &Sources, problems: Diagnostics) -> String {
    let mut text = String::new();
    for problem in problems.into_sorted() {
        let span = problem.primary.span;
        let source = sources.get(span.file);
        let before = source.text().get(..span.start as usize).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let (file, title) = (property(&source.name), property(&problem.title));
        let label = problem.primary.text;
        let message = match problem.hint {
            Some(hint) => format!("{label}; {hint}"),
            None => label,
        };
        writeln!(
            text,
            "::error file={file},line={line},col={column},title={title}::{}",
            escaped(&message)
        )
        .unwrap_or_default();
    }
    text
}

/// The same for a warning that has no place.
#[must_use]
pub fn github_warning(message: &str) -> String {
    format!("::warning::{}\n", escaped(message))
}

/// What would end the message.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What would end a property.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use tiphys_spec::Source;

    use super::*;

    #[test]
    fn each_problem_is_a_line_at_its_place() {
        let text = "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: { name: x }\nspec:\n  \
                    stacks: [{ name: s, apps: [{ name: a, dependsOn: [b] }, { name: \"100%\" }] }]\n";
        let source = Source::new("a,b.yaml", text.into()).unwrap();
        let sources = Sources::new(vec![source]);
        let problems = tiphys_spec::platform(&sources).unwrap_err();
        let text = github_annotations(&sources, problems);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("::error file=a%2Cb.yaml,line=5,col=67,title=`100%25`"), "{text}");
        assert_eq!(github_warning("a\nb"), "::warning::a%0Ab\n");
    }
}
