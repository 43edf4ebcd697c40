//! What one must be able to log in with, as RFC 3.2.6 lists it. Each is tried, none is shown.

use serde::Serialize;

use super::address::registry;
use super::{Check, NO_CLUSTER, Problem, Requirement, Section, Trouble};

/// The fourth output of Phase 0, for one credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    pub name: String,
    pub state: State,
    /// Whether it could change what is its source of truth; null where that is not known.
    pub can_write: Option<bool>,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Accepted,
    Rejected,
    /// There is none, and everything works without.
    NotNeeded,
    Missing,
    NotTried,
}

/// What came of logging in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    Accepted(Write),
    Rejected(String),
    /// None was given, and none was asked for.
    NotNeeded,
    /// None was given, but one was asked for.
    Wanted,
    /// There is nothing to try, or something else is said to be in the way.
    NotTried(String),
    /// It was tried, and who should answer did not.
    Unanswered(String),
}

/// Whether one could write with it; nobody has tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Granted,
    Denied,
    NotKnown(String),
}

/// What becomes of one credential: its checks, and its line of the report.
pub type Judged = (Vec<Check>, Credential);

fn requirement(name: &str, required: &str) -> Requirement {
    Requirement::new(Section::Credentials, name, required)
}

/// Whether the kubeconfig is there and works.
#[must_use]
pub fn kubeconfig(works: &Result<(), Problem>) -> Judged {
    let name = "kubeconfig";
    let requirement = requirement(name, "accepted by the API server");
    let (check, state) = match works {
        Ok(()) => (requirement.passed("accepted"), State::Accepted),
        Err(problem) => match problem.trouble {
            Trouble::Missing => (requirement.unknown(problem), State::Missing),
            Trouble::Rejected => (requirement.unknown(problem), State::Rejected),
            // That is said once, where it belongs.
            Trouble::Unreachable => (requirement.skipped(NO_CLUSTER), State::NotTried),
        },
    };
    let credential =
        Credential { name: name.to_owned(), state, can_write: None, detail: check.found.clone() };
    (vec![check], credential)
}

/// `folder` is where it is read from.
#[must_use]
pub fn git(login: &Login, folder: &str, strict: bool) -> Judged {
    let accepted = requirement("git", "can read the repository");
    let held = requirement("git, read only", "cannot write to the repository");
    let put = format!("put `ssh-privatekey` and `known_hosts`, or `password`, into {folder}/git");
    judge("git", login, strict, (accepted, held), &put)
}

/// For one registry of the Docker configuration.
#[must_use]
pub fn registry_host(host: &str, login: &Login, folder: &str, strict: bool) -> Judged {
    let name = format!("registry {host}");
    let accepted = requirement(&name, "accepted by the registry");
    let held = requirement(&format!("{name}, read only"), "cannot push");
    let put = format!("put a Docker configuration with {host} into {folder}/registry/config.json");
    judge(&name, login, strict, (accepted, held), &put)
}

/// `accepted` is about the login, `held` about what could be written with it.
fn judge(
    name: &str,
    login: &Login,
    strict: bool,
    (accepted, held): (Requirement, Requirement),
    put: &str,
) -> Judged {
    let mut checks = Vec::new();
    let mut can_write = None;
    let (check, state) = match login {
        Login::Accepted(write) => {
            let (check, may) = judge_write(held, write);
            checks.push(check);
            can_write = may;
            (accepted.passed("accepted"), State::Accepted)
        }
        Login::Rejected(why) => {
            let next = "replace it with a valid one that can read";
            (accepted.failed(Trouble::Rejected, why, next), State::Rejected)
        }
        Login::NotNeeded if strict => {
            let found = "none, and none is required";
            (accepted.failed(Trouble::Missing, found, put), State::NotNeeded)
        }
        Login::NotNeeded => (accepted.passed("not needed for reading"), State::NotNeeded),
        Login::Wanted => {
            (accepted.failed(Trouble::Missing, "none, but one is required", put), State::Missing)
        }
        Login::NotTried(why) => (accepted.skipped(why), State::NotTried),
        Login::Unanswered(why) => {
            let next = "make sure that it is reachable from here, or try it manually";
            (accepted.warned(why, next), State::NotTried)
        }
    };
    let detail = check.found.clone();
    checks.insert(0, check);
    (checks, Credential { name: name.to_owned(), state, can_write, detail })
}

/// RFC 3.4: the cluster must not have write access to external sources of truth.
fn judge_write(held: Requirement, write: &Write) -> (Check, Option<bool>) {
    match write {
        Write::Denied => (held.passed("cannot write"), Some(false)),
        Write::Granted => {
            let next = "use a read-only one: credentials in the cluster can leak";
            (held.warned("can write", next), Some(true))
        }
        Write::NotKnown(why) => (held.skipped(format!("unknown: {why}")), None),
    }
}

/// For the DNS provider there are only files: what they are for, only the provider knows.
#[must_use]
pub fn dns(files: usize, folder: &str, strict: bool) -> Judged {
    let requirement = requirement("dns", "present (not checked)");
    let next = format!("put the DNS provider's credentials into {folder}/dns if an app needs them");
    let (check, state) = match files {
        0 if strict => (requirement.failed(Trouble::Missing, "none", next), State::Missing),
        // Whether an app needs them, only its owner knows.
        0 => (requirement.skipped("none given"), State::Missing),
        1 => (requirement.passed("1 file, not checked"), State::NotTried),
        count => (requirement.passed(format!("{count} files, not checked")), State::NotTried),
    };
    let detail = check.found.clone();
    (vec![check], Credential { name: "dns".to_owned(), state, can_write: None, detail })
}

/// There is no Docker configuration. Public registries ask for a login as well, and then give
/// one to anybody, so whether one is needed shows only when an image is pulled.
#[must_use]
pub fn no_registries(folder: &str, strict: bool) -> Judged {
    let name = "registry";
    let requirement = requirement(name, "accepted by the registry");
    let (check, state) = if strict {
        let next = format!("put a Docker configuration into {folder}/registry/config.json");
        (requirement.failed(Trouble::Missing, "none", next), State::Missing)
    } else {
        let why = "no Docker configuration: images are pulled anonymously";
        (requirement.skipped(why), State::NotTried)
    };
    let detail = check.found.clone();
    (vec![check], Credential { name: name.to_owned(), state, can_write: None, detail })
}

/// What could be pushed to a registry under a name of ours: a place of the first mirror in it.
/// Nothing is pushed.
#[must_use]
pub fn probe_repository(host: &str, mirrors: &[&str]) -> String {
    let places = mirrors.iter().map(|to| registry(to)).filter(|(name, _)| *name == host);
    let prefix = places.map(|(_, path)| path.trim_end_matches('/')).find(|path| !path.is_empty());
    format!("{}/preflight", prefix.unwrap_or("tiphys"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Outcome;

    const FOLDER: &str = "/credentials";

    fn outcomes(judged: &Judged) -> Vec<&'static str> {
        judged.0.iter().map(|check| check.outcome.as_str()).collect()
    }

    #[test]
    fn credentials_are_judged_by_what_came_of_trying_them() {
        let unknown = Write::NotKnown("no token service".to_owned());
        let why = || "refused".to_owned();
        let cases: [(Login, bool, &[&str], State); 10] = [
            (Login::Accepted(Write::Denied), false, &["pass", "pass"], State::Accepted),
            (Login::Accepted(Write::Granted), false, &["pass", "warning"], State::Accepted),
            (Login::Accepted(unknown), false, &["pass", "skipped"], State::Accepted),
            (Login::Rejected(why()), false, &["fail"], State::Rejected),
            (Login::NotNeeded, false, &["pass"], State::NotNeeded),
            (Login::NotNeeded, true, &["fail"], State::NotNeeded),
            (Login::Wanted, false, &["fail"], State::Missing),
            (Login::NotTried(why()), false, &["skipped"], State::NotTried),
            (Login::NotTried(why()), true, &["skipped"], State::NotTried),
            (Login::Unanswered(why()), false, &["warning"], State::NotTried),
        ];
        for (login, strict, expected, state) in cases {
            let of_git = git(&login, FOLDER, strict);
            let of_registry = registry_host("quay.io", &login, FOLDER, strict);
            for judged in [of_git, of_registry] {
                assert_eq!(outcomes(&judged), expected, "{login:?} {strict}");
                assert_eq!(judged.1.state, state, "{login:?} {strict}");
            }
        }
    }

    #[test]
    fn only_what_was_rejected_ends_with_4() {
        let rejected = git(&Login::Rejected("no".to_owned()), FOLDER, false);
        assert_eq!(rejected.0[0].outcome, Outcome::Fail(Trouble::Rejected));
        let wanted = git(&Login::Wanted, FOLDER, false);
        assert_eq!(wanted.0[0].outcome, Outcome::Fail(Trouble::Missing));
    }

    #[test]
    fn dns_is_only_counted() {
        assert_eq!(outcomes(&dns(0, FOLDER, false)), ["skipped"]);
        assert_eq!(outcomes(&dns(0, FOLDER, true)), ["fail"]);
        assert_eq!(outcomes(&dns(2, FOLDER, true)), ["pass"]);
    }

    #[test]
    fn what_is_asked_for_lies_in_the_mirror() {
        let mirrors = ["quay.io/mirror/argoproj/", "other.example/a", "plain.example"];
        assert_eq!(probe_repository("quay.io", &mirrors), "mirror/argoproj/preflight");
        assert_eq!(probe_repository("plain.example", &mirrors), "tiphys/preflight");
    }
}
