//! Failures that have no line in a file.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Element, Level, Origin, Renderer};

use crate::diagnostics::harmless;

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
    let element = |text: &Option<String>, make: fn(String) -> Element<'static>| {
        text.as_ref().map(|text| make(harmless(text).into_owned()))
    };
    let elements = [
        element(&notice.place, |place| Origin::path(place).into()),
        element(&notice.why, |why| Level::NOTE.message(why).into()),
        element(&notice.next, |next| Level::HELP.message(next).into()),
    ];
    let title = Level::ERROR.primary_title(harmless(&notice.what).into_owned());
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let mut text = renderer.render(&[title.elements(elements.into_iter().flatten())]);
    text.push('\n');
    text
}
