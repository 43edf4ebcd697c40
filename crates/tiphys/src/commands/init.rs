//! `tiphys init`: a first platform file.

use crate::args::InitArgs;
use crate::failure::Failure;
use crate::{input, output};

pub(crate) fn run(args: InitArgs) -> Result<(), Failure> {
    let waves = input::sync_waves(args.edges_from_waves);
    let text = input::platform_file_from_applications(&args.from_applications, args.name, waves)?;
    output::data(|out| out.write_all(text.as_bytes()))
}
