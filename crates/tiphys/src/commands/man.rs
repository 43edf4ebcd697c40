//! `tiphys man`: manual pages, one for each action.

use std::fs;

use clap_mangen::Man;

use crate::args::ManArgs;
use crate::failure::Failure;
use crate::variables;

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    let mut command = variables::command().disable_help_subcommand(true);
    command.build();
    fs::create_dir_all(&args.directory).map_err(Failure::unwritable(&args.directory))?;
    let actions = command.get_subcommands();
    let actions = actions.map(|action| (format!("tiphys-{}", action.get_name()), action));
    for (name, command) in [("tiphys".to_owned(), &command)].into_iter().chain(actions) {
        let mut page = Vec::new();
        let man = Man::new(command.clone()).title(name.to_uppercase()).manual("Tiphys");
        man.render(&mut page).map_err(Failure::Output)?;
        let path = args.directory.join(format!("{name}.1"));
        fs::write(&path, page).map_err(Failure::unwritable(&path))?;
    }
    Ok(())
}
