//! What `-o` may say.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// How a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// For people: live on a terminal, otherwise a line for each transition
    Text,
    /// Events, one line of JSON each
    Jsonl,
}

/// How a document is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// For people
    Text,
    /// One document
    Json,
}

impl DocumentFormat {
    /// Reads it where the help says more about the document.
    pub(super) fn of(json: PossibleValue) -> impl TypedValueParser<Value = DocumentFormat> {
        let text = PossibleValue::new("text").help("For people");
        PossibleValuesParser::new([text, json]).map(|name| match name.as_str() {
            "json" => DocumentFormat::Json,
            _ => DocumentFormat::Text,
        })
    }
}
