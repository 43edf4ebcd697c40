//! `tiphys version`.

use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<(), Failure> {
    output::data(|out| {
        writeln!(out, "tiphys {} ({})", env!("CARGO_PKG_VERSION"), env!("TIPHYS_COMMIT"))?;
        writeln!(out, "platform file {}", tiphys_spec::API_VERSION)?;
        writeln!(out, "plan          {}", tiphys_plan::API_VERSION)?;
        writeln!(out, "events        v{}", tiphys_run::EVENTS_VERSION)
    })
}
