//! `tiphys version`.

use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<(), Failure> {
    output::data(|out| writeln!(out, "tiphys {}", env!("CARGO_PKG_VERSION")))
}
