//! What `git` and `ssh` say when a repository is asked for over SSH.

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshAnswer {
    /// The server is who it should be, but does not accept who asks.
    Denied,
    /// The server is not known, or not who it should be.
    HostKey,
    /// The server accepts who asks, but has no such repository, or does not show it.
    NoRepository,
    /// There is no program `ssh`.
    NoProgram,
    /// Nobody answers, or nobody who speaks SSH.
    Away,
}

/// Reads what was said on stderr by a command that failed.
#[must_use]
pub fn answer(said: &str) -> SshAnswer {
    let says = |words: &str| said.contains(words);
    if says("Host key verification failed") {
        SshAnswer::HostKey
    } else if says("Permission denied (") || says("Too many authentication failures") {
        SshAnswer::Denied
    } else if says("cannot run ssh") || says("ssh: not found") {
        SshAnswer::NoProgram
    } else if says("does not appear to be a git repository")
        || says("not found")
        || says("does not exist")
    {
        SshAnswer::NoRepository
    } else {
        SshAnswer::Away
    }
}

/// The one line that tells most: what is said of the host key, or else the first line that is
/// neither a warning nor Git's farewell.
#[must_use]
pub fn telling_line(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    if let Some(line) = lines.clone().find(|line| line.ends_with("requested strict checking.")) {
        return line;
    }
    let noise = ["Warning:", "fatal: Could not read from remote", "Please make sure", "and the "];
    let telling =
        lines.find(|line| !line.starts_with('@') && !noise.iter().any(|n| line.starts_with(n)));
    telling.unwrap_or("no reason was given")
}

/// What `git-receive-pack` begins with, if one may push: a line with its length in four
/// hexadecimal digits.
#[must_use]
pub fn is_advertisement(said: &[u8]) -> bool {
    let digits = said.get(..4).is_some_and(|start| start.iter().all(u8::is_ascii_hexdigit));
    digits && said.len() > 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAREWELL: &str = "fatal: Could not read from remote repository.\n\nPlease make sure you \
        have the correct access rights\nand the repository exists.\n";

    #[test]
    fn answers_of_openssh_and_of_servers() {
        let cases = [
            ("git@git.example: Permission denied (publickey).\r\n", SshAnswer::Denied),
            (
                "No ED25519 host key is known for [git.example]:2222 and you have requested \
                 strict checking.\r\nHost key verification failed.\r\n",
                SshAnswer::HostKey,
            ),
            (
                "@@@@@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
                 Host key for git.example has changed and you have requested strict checking.\n\
                 Host key verification failed.\n",
                SshAnswer::HostKey,
            ),
            (
                "fatal: '/srv/git/none.git' does not appear to be a git repository\n",
                SshAnswer::NoRepository,
            ),
            ("ERROR: Repository not found.\n", SshAnswer::NoRepository),
            (
                "error: cannot run ssh: No such file or directory\nfatal: unable to fork\n",
                SshAnswer::NoProgram,
            ),
            ("ssh: connect to host git.example port 22: Connection refused\r\n", SshAnswer::Away),
            (
                "ssh: Could not resolve hostname git.example: Name or service not known\r\n",
                SshAnswer::Away,
            ),
            ("kex_exchange_identification: Connection closed by remote host\r\n", SshAnswer::Away),
        ];
        for (said, expected) in cases {
            assert_eq!(answer(&format!("{said}{FAREWELL}")), expected, "{said}");
        }
    }

    #[test]
    fn the_telling_line_is_neither_a_warning_nor_the_farewell() {
        let said = format!(
            "Warning: Permanently added 'git.example' to the list of known hosts.\n@@@@\n\
             git@git.example: Permission denied (publickey).\n{FAREWELL}"
        );
        assert_eq!(telling_line(&said), "git@git.example: Permission denied (publickey).");
        assert_eq!(telling_line(FAREWELL), "no reason was given");
        let changed = "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nIT IS POSSIBLE \
            THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key for [git.example]:22 has changed and \
            you have requested strict checking.\r\nHost key verification failed.\n";
        assert_eq!(
            telling_line(changed),
            "Host key for [git.example]:22 has changed and you have requested strict checking."
        );
    }

    #[test]
    fn who_may_push_is_sent_a_list_of_references() {
        assert!(is_advertisement(b"00b10000000000000000000000000000000000000000 capabilities^{}"));
        assert!(!is_advertisement(b""));
        assert!(!is_advertisement(b"0000"));
        assert!(!is_advertisement(b"ERROR: read only"));
    }
}
