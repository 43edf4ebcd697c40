//! Environment variables for flags, in one table.
//!
//! A flag on the command line counts more than a variable, and so does one that excludes it. Flags
//! that consent to something or force something have no variable: what an environment says was
//! perhaps meant for something else.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::args::Args;

/// Each flag, and the variable that sets it.
const TABLE: [(&str, &str); 9] = [
    ("file", "TIPHYS_FILE"),
    ("platform", "TIPHYS_PLATFORM"),
    ("scope", "TIPHYS_SCOPE"),
    ("context", "TIPHYS_CONTEXT"),
    ("namespace", "TIPHYS_NAMESPACE"),
    ("credentials", "TIPHYS_CREDENTIALS"),
    ("timeout", "TIPHYS_TIMEOUT"),
    ("junit", "TIPHYS_JUNIT"),
    ("summary", "TIPHYS_SUMMARY"),
];

/// The command line, whose help also names the variables.
pub(crate) fn command() -> Command {
    let named = |argument: clap::Arg| {
        let variable = argument.get_long().and_then(variable);
        match (variable, argument.get_help().map(ToString::to_string)) {
            (Some(variable), Some(help)) => argument.help(format!("{help} [env: {variable}]")),
            _ => argument,
        }
    };
    let inner = |part: Command| part.mut_args(named);
    Args::command().mut_subcommands(|action| action.mut_args(named).mut_subcommands(inner))
}

fn variable(flag: &str) -> Option<&'static str> {
    TABLE.iter().find(|(long, _)| *long == flag).map(|(_, variable)| *variable)
}

/// What the command line says, completed by variables; those that were used.
pub(crate) fn parse(
    words: Vec<OsString>,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<(Args, Vec<&'static str>), clap::Error> {
    let mut command = command();
    let given = command.try_get_matches_from_mut(&words)?;
    let (action, of_action, depth) = action(&command, &given);
    let (flags, used) = from_variables(action, of_action, lookup);
    let matches = if flags.is_empty() {
        given
    } else {
        let complete = command.try_get_matches_from_mut(with_flags(words, depth, &flags));
        complete.map_err(|error| naming(error, &used))?
    };
    Ok((Args::from_arg_matches(&matches)?, used))
}

/// The action, or the part of it that was called, and how many words name it.
fn action<'a>(
    mut command: &'a Command,
    mut given: &'a ArgMatches,
) -> (&'a Command, &'a ArgMatches, usize) {
    let mut depth = 0;
    while let Some((name, inner)) = given.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, given, depth) = (found, inner, depth + 1);
    }
    (command, given, depth)
}

/// Flags of the action that nothing on the command line decides, and their variables.
fn from_variables(
    action: &Command,
    given: &ArgMatches,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> (Vec<OsString>, Vec<&'static str>) {
    let on_command_line = |argument: &clap::Arg| {
        given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let present: Vec<&clap::Arg> = action.get_arguments().filter(|a| on_command_line(a)).collect();
    // A conflict is declared by one of the two.
    let decided: BTreeSet<&str> = present
        .iter()
        .flat_map(|one| action.get_arg_conflicts_with(one).into_iter().chain([*one]))
        .map(|argument| argument.get_id().as_str())
        .collect();
    let excluded = |argument: &clap::Arg| {
        let mut conflicts = action.get_arg_conflicts_with(argument).into_iter();
        decided.contains(argument.get_id().as_str()) || conflicts.any(on_command_line)
    };
    action
        .get_arguments()
        .filter(|argument| !excluded(argument))
        .filter_map(|argument| {
            let flag = argument.get_long()?;
            let variable = variable(flag)?;
            let value = lookup(variable).filter(|value| !value.is_empty())?;
            let mut word = OsString::from(format!("--{flag}="));
            word.push(value);
            Some((word, variable))
        })
        .unzip()
}

/// Inserts flags directly after the action: a `--` may follow, and nothing after it is a flag.
fn with_flags(mut words: Vec<OsString>, depth: usize, flags: &[OsString]) -> Vec<OsString> {
    let is_action = |(_, word): &(usize, &OsString)| !word.as_encoded_bytes().starts_with(b"-");
    let mut actions = words.iter().enumerate().skip(1).filter(is_action);
    let action = actions.nth(depth.saturating_sub(1)).map_or(words.len(), |(at, _)| at + 1);
    words.splice(action..action, flags.iter().cloned());
    words
}

/// Somebody who did not write a flag has to know where it came from.
fn naming(error: clap::Error, used: &[&str]) -> clap::Error {
    let about = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let from = used.iter().find(|variable| {
        TABLE.iter().any(|(flag, name)| name == *variable && about.contains(&format!("--{flag}")))
    });
    match from {
        Some(variable) => {
            let first = first_line(&error);
            command().error(error.kind(), format!("{first} (from the variable {variable})"))
        }
        None => error,
    }
}

/// What is wrong, without what clap says to everybody.
pub(crate) fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Action, TriggersAction, TriggersArgs};

    fn parse_with(words: &str, variables: &[(&str, &str)]) -> Result<Args, clap::Error> {
        let words = words.split_whitespace().map(OsString::from).collect();
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        parse(words, |name| found(name).map(|(_, value)| value.into())).map(|(args, _)| args)
    }

    fn file_of(words: &str, variables: &[(&str, &str)]) -> Option<String> {
        let args = parse_with(words, variables).unwrap();
        let file = match args.action {
            Action::Plan(args) => args.platform.file,
            Action::Status(args) => args.look.platform.file,
            Action::Why(args) => args.look.platform.file,
            Action::Configure(args) => Some(args.setup.file),
            Action::Rehearse(args) => args.platform.file,
            Action::Triggers(TriggersArgs { action: TriggersAction::Test(args) }) => {
                args.platform.file
            }
            other => panic!("{other:?}"),
        };
        file.map(|file| file.display().to_string())
    }

    #[test]
    fn a_variable_counts_where_nothing_else_is_said() {
        let file = [("TIPHYS_FILE", "a.yaml")];
        for words in [
            "tiphys plan",
            "tiphys -v status -w",
            "tiphys why -- web",
            "tiphys configure",
            "tiphys triggers -v test -- push",
        ] {
            assert_eq!(file_of(words, &file).as_deref(), Some("a.yaml"), "{words}");
        }
        assert_eq!(file_of("tiphys plan -f b.yaml", &file).as_deref(), Some("b.yaml"));
        assert_eq!(file_of("tiphys plan", &[("TIPHYS_FILE", "")]), None);
    }

    #[test]
    fn a_flag_that_excludes_it_counts_more() {
        let file = [("TIPHYS_FILE", "a.yaml")];
        for words in [
            "tiphys plan --from-applications apps",
            "tiphys status --platform shop",
            "tiphys rehearse --seeds 3",
        ] {
            assert_eq!(file_of(words, &file), None, "{words}");
        }
    }

    #[test]
    fn a_wrong_value_says_where_it_comes_from() {
        let error = parse_with("tiphys deploy", &[("TIPHYS_TIMEOUT", "soon")]).unwrap_err();
        let text = error.render().to_string();
        assert!(text.contains("--timeout") && text.contains("TIPHYS_TIMEOUT"), "{text}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn nothing_that_consents_or_forces_has_a_variable() {
        for flag in ["yes", "including-others", "force-finalizer", "allow-uncommitted", "adopt"] {
            assert_eq!(variable(flag), None);
        }
        let command = command();
        let flags = command.get_subcommands().flat_map(Command::get_arguments);
        let flags: BTreeSet<&str> = flags.filter_map(clap::Arg::get_long).collect();
        for (flag, _) in TABLE {
            assert!(flags.contains(flag), "{flag}");
        }
    }
}
