//! `tiphys completion`: what a shell has to be told.

use crate::args::CompletionArgs;
use crate::completer;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &CompletionArgs) -> Result<(), Failure> {
    let script = completer::registration(args.shell).map_err(Failure::Output)?;
    output::data(|out| out.write_all(&script))
}
