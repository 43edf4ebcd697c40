//! `tiphys schema`: the JSON Schema of platform files.

use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<(), Failure> {
    output::data(|out| out.write_all(tiphys_spec::PLATFORM_SCHEMA.as_bytes()))
}
