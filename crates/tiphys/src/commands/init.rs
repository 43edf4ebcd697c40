//! `tiphys init`: a first platform file.

mod answers;
mod root_app;

use std::path::Path;

use tiphys_model::PlatformName;
use tiphys_spec::{Source, Sources};

use crate::args::InitArgs;
use crate::display::can_ask;
use crate::failure::Failure;
use crate::input::InputError;
use crate::{input, output};
use answers::{Answers, ask};

pub(crate) fn run(args: InitArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.root_app {
        let file = args.file.as_deref().unwrap_or(Path::new(input::DEFAULT));
        return root_app::write(directory, file);
    }
    let text = match &args.from_applications {
        Some(directory) => {
            let waves = input::sync_waves(args.edges_from_waves);
            let name = args.name.unwrap_or_else(default_name);
            input::platform_file_from_applications(directory, name, waves)?
        }
        None => first(args.name)?,
    };
    output::data(|out| out.write_all(text.as_bytes()))
}

fn default_name() -> PlatformName {
    PlatformName::parse("platform").expect("`platform` is a valid name")
}

/// From what people answer, or with examples where nobody can be asked.
fn first(name: Option<PlatformName>) -> Result<String, Failure> {
    let answers = if can_ask() { ask(name)? } else { Answers::example(name) };
    let text = answers.platform_file();
    // An app that nobody has named, or a cycle, is said here and not by the next command.
    let source = Source::new("answers", text.clone().into_bytes());
    let sources = Sources::new(vec![source.map_err(|e| Failure::Input(InputError::NotText(e)))?]);
    match tiphys_spec::platform(&sources) {
        Ok(_) => Ok(text),
        Err(problems) => Err(Failure::Platform(Box::new(sources), problems)),
    }
}
