//! What shells complete: names of apps and stacks, from the platform file that is meant.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate, Shell};
use tiphys_model::Platform;

use crate::args::known_scopes;
use crate::{input, variables};

/// A shell sets it when it asks what may follow.
const VARIABLE: &str = "TIPHYS_COMPLETE";

/// Bash ends words at colons, and scopes contain them: words are joined before bash asks, and what it
/// has already is taken off the answers.
const BASH_COLONS: &str = r#"
_tiphys_complete() {
    local joined=() before= word
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#joined[@]} -gt 0 && ( $word == : || $before == : ) ]]; then
            joined[-1]+=$word
        else
            joined+=("$word")
        fi
        before=$word
    done
    local COMP_WORDS=("${joined[@]}") COMP_CWORD=$(( ${#joined[@]} - 1 ))
    local current=${joined[-1]}
    _clap_complete_tiphys "$1" "$current" "$3"
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
}
complete -o nospace -o bashdefault -F _tiphys_complete tiphys
"#;

/// Answers a shell that asks what may follow, and ends. It asks with the words after `--`; otherwise the
/// variable was meant for somebody else.
pub(crate) fn answer() {
    if env::args_os().nth(1).is_none_or(|first| first != "--") {
        return;
    }
    CompleteEnv::with_factory(variables::command).var(VARIABLE).complete();
}

/// What a shell has to be told so that it asks.
pub(crate) fn registration(shell: Shell) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        completer.write_registration(VARIABLE, "tiphys", "tiphys", "tiphys", &mut script)?;
    }
    if shell == Shell::Bash {
        script.extend_from_slice(BASH_COLONS.as_bytes());
    }
    Ok(script)
}

/// For `why APP`.
pub(crate) fn apps(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |platform| platform.apps.iter().map(|app| app.name.to_string()).collect())
}

/// For `--scope`.
pub(crate) fn scopes(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, |platform| known_scopes(platform).into_iter().collect())
}

fn candidates(
    current: &OsStr,
    names: impl FnOnce(&Platform) -> Vec<String>,
) -> Vec<CompletionCandidate> {
    let Some(platform) = input::silently(file(env::args_os()).as_deref()) else {
        return Vec::new();
    };
    let current = current.to_string_lossy();
    let names = names(&platform).into_iter().filter(|name| name.starts_with(&*current));
    names.map(CompletionCandidate::new).collect()
}

/// The platform file of the command line that is being written.
fn file(words: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
    let mut words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if word == "-f" || word == "--file" {
            return words.next().map(PathBuf::from);
        }
        let joined = word.strip_prefix("--file=").or_else(|| word.strip_prefix("-f"));
        if let Some(file) = joined {
            return Some(file.into());
        }
    }
    env::var_os("TIPHYS_FILE").filter(|file| !file.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_file_is_found_however_it_is_given() {
        for words in ["why -f a.yaml", "why --file a.yaml", "why --file=a.yaml", "why -fa.yaml"] {
            let found = file(words.split(' ').map(OsString::from));
            assert_eq!(found, Some("a.yaml".into()), "{words}");
        }
    }
}
