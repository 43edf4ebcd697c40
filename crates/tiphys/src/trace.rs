//! What `-v` and `-vv` show on stderr.

use std::io;

use anstream::{AutoStream, ColorChoice};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// The beginning of our crates' names. Libraries have their own ideas of what matters, and of what is
/// secret.
const OURS: &str = "tiphys";

pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2.. => LevelFilter::DEBUG,
    };
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
        .with_timer(fmt::time::uptime())
        .with_target(false);
    let ours = Targets::new().with_target(OURS, level);
    tracing_subscriber::registry().with(lines.with_filter(ours)).init();
}
