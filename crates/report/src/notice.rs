//! Failures that have no line in a file.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Element, Level, Origin, Renderer};

use crate::harmless::{harmless, one_line};

/// What went wrong, where, why, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub what: String,
    /// A path, or an object in a cluster.
    pub place: Option<String>,
    pub why: Option<String>,
    pub next: Option<String>,
}

#[must_use]
pub fn render_notice(notice: &Notice) -> String {
    let element =
        |text: &Option<String>, make: fn(&str) -> Element<'static>| text.as_deref().map(make);
    let elements = [
        element(&notice.place, |place| Origin::path(one_line(place)).into()),
        // The renderer indents further lines, so they are none of ours.
        element(&notice.why, |why| Level::NOTE.message(harmless(why).into_owned()).into()),
        element(&notice.next, |next| Level::HELP.message(one_line(next)).into()),
    ];
    let title = Level::ERROR.primary_title(one_line(&notice.what));
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let mut text = renderer.render(&[title.elements(elements.into_iter().flatten())]);
    text.push('\n');
    text
}
