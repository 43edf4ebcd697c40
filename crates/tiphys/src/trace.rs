//! What `-v` and `-vv` show on stderr.

use std::io;
use std::time::Instant;

use anstream::{AutoStream, ColorChoice};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::prelude::*;

/// The beginning of our crates' names. Libraries have their own ideas of what matters, and of what is
/// secret.
const OURS: &str = "tiphys";

/// Seconds since the start of the program.
struct SinceStart(Instant);

impl FormatTime for SinceStart {
    fn format_time(&self, line: &mut Writer<'_>) -> std::fmt::Result {
        write!(line, "{:9.3}s", self.0.elapsed().as_secs_f64())
    }
}

pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2.. => LevelFilter::DEBUG,
    };
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
        .with_timer(SinceStart(Instant::now()))
        .with_target(false);
    let ours = Targets::new().with_target(OURS, level);
    tracing_subscriber::registry().with(lines.with_filter(ours)).init();
}
