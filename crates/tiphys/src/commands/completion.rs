//! `tiphys completion`: scripts for shells.

use clap::CommandFactory;

use crate::args::{Args, CompletionArgs};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tiphys", &mut script);
    output::data(|out| out.write_all(&script))
}
