//! What `-o` may say.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// How a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Live view on a terminal, otherwise one line per transition
    Text,
    /// Events, one JSON object per line
    Jsonl,
}

/// How a document is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Human-readable
    Text,
    /// One JSON document
    Json,
}

impl DocumentFormat {
    /// Reads it where the help says more about the document.
    pub(super) fn of(json: PossibleValue) -> impl TypedValueParser<Value = DocumentFormat> {
        let text = PossibleValue::new("text").help("Human-readable");
        PossibleValuesParser::new([text, json]).map(|name| match name.as_str() {
            "json" => DocumentFormat::Json,
            _ => DocumentFormat::Text,
        })
    }
}
