//! Addresses, as the platform file has them.

/// Where a Git repository is, by how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitAddress {
    Https,
    Ssh(SshAddress),
    /// On this machine, without encryption, or in a way that is not known here.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAddress {
    /// `USER@HOST`, or `HOST` alone.
    pub login: String,
    pub port: Option<u16>,
    pub path: String,
}

impl GitAddress {
    #[must_use]
    pub fn parse(url: &str) -> Self {
        if url.starts_with("https://") {
            return GitAddress::Https;
        }
        let ssh = match url.strip_prefix("ssh://") {
            Some(rest) => with_scheme(rest),
            None if url.contains("://") => None,
            None => without_scheme(url),
        };
        ssh.map_or(GitAddress::Other, GitAddress::Ssh)
    }
}

/// `git@host:2222/team/platform.git`
fn with_scheme(rest: &str) -> Option<SshAddress> {
    let (authority, path) = rest.split_once('/')?;
    let (login, port) = match authority.rsplit_once(':') {
        Some((login, port)) if !port.contains(']') => (login, Some(port.parse().ok()?)),
        _ => (authority, None),
    };
    // `/~user/repo` is seen from a home, and everything else from the root.
    let path = if path.starts_with('~') { path.to_owned() } else { format!("/{path}") };
    address(login, port, path)
}

/// `git@host:team/platform.git`
fn without_scheme(url: &str) -> Option<SshAddress> {
    let (login, path) = url.split_once(':')?;
    // Git takes a slash before the colon for a path on this machine.
    if login.contains('/') { None } else { address(login, None, path.to_owned()) }
}

/// What begins with a dash would be an option of the programs that it is given to.
fn address(login: &str, port: Option<u16>, path: String) -> Option<SshAddress> {
    let host = login.rsplit_once('@').map_or(login, |(_, host)| host);
    let dangerous = login.starts_with('-') || host.starts_with('-') || path.starts_with('-');
    let usable = !host.is_empty() && !path.is_empty() && !dangerous;
    usable.then(|| SshAddress { login: login.to_owned(), port, path })
}

/// The address without what may be secret in it: a password, and over HTTP also the user, which
/// often is a token.
#[must_use]
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Some((user, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    match user.split_once(':') {
        None if scheme == "ssh" => url.to_owned(),
        _ => format!("{scheme}://…@{host}{path}"),
    }
}

/// The address without a user and password.
#[must_use]
pub fn anonymous(url: &str) -> String {
    redacted(url).replacen("…@", "", 1)
}

/// The registry of an image, and the rest of its name: `docker.io` where it says none.
#[must_use]
pub fn registry(image: &str) -> (&str, &str) {
    let (first, rest) = image.split_once('/').unwrap_or((image, ""));
    let named = first.contains('.') || first.contains(':') || first == "localhost";
    if named { (first, rest) } else { ("docker.io", image) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(login: &str, port: Option<u16>, path: &str) -> GitAddress {
        GitAddress::Ssh(SshAddress { login: login.to_owned(), port, path: path.to_owned() })
    }

    #[test]
    fn git_addresses_of_every_kind() {
        let cases = [
            ("https://git.example/platform.git", GitAddress::Https),
            ("http://git.example/platform.git", GitAddress::Other),
            (
                "git@git.example:team/platform.git",
                ssh("git@git.example", None, "team/platform.git"),
            ),
            ("ssh://git@git.example/p.git", ssh("git@git.example", None, "/p.git")),
            ("ssh://git@git.example:2222/p.git", ssh("git@git.example", Some(2222), "/p.git")),
            ("ssh://git.example/~me/p.git", ssh("git.example", None, "~me/p.git")),
            ("ssh://git@git.example:port/p.git", GitAddress::Other),
            ("-oProxyCommand=evil:p.git", GitAddress::Other),
            ("ssh://-oProxyCommand=evil/p.git", GitAddress::Other),
            ("git@-evil:p.git", GitAddress::Other),
            ("git@git.example:--upload-pack=evil", GitAddress::Other),
            ("/srv/git/platform.git", GitAddress::Other),
            ("./a:b", GitAddress::Other),
            ("file:///srv/git/platform.git", GitAddress::Other),
            ("git://git.example/platform.git", GitAddress::Other),
        ];
        for (url, address) in cases {
            assert_eq!(GitAddress::parse(url), address, "{url}");
        }
    }

    #[test]
    fn secrets_in_addresses_are_not_shown() {
        let cases = [
            ("https://me:secret@git.example/p.git", "https://…@git.example/p.git"),
            ("https://token@git.example/p.git", "https://…@git.example/p.git"),
            ("https://me:se@cret@git.example/p", "https://…@git.example/p"),
            ("https://git.example/p.git", "https://git.example/p.git"),
            ("https://git.example/@scope/p", "https://git.example/@scope/p"),
            ("ssh://git@git.example/p.git", "ssh://git@git.example/p.git"),
            ("ssh://git:secret@git.example/p.git", "ssh://…@git.example/p.git"),
            ("git@git.example:p.git", "git@git.example:p.git"),
        ];
        for (url, shown) in cases {
            assert_eq!(redacted(url), shown);
        }
        assert_eq!(anonymous("https://me:secret@git.example/p"), "https://git.example/p");
    }

    #[test]
    fn images_are_at_docker_hub_unless_they_say_where() {
        let cases = [
            ("quay.io/argoproj/argocd", ("quay.io", "argoproj/argocd")),
            ("registry:5000/argocd", ("registry:5000", "argocd")),
            ("localhost/argocd", ("localhost", "argocd")),
            ("argoproj/argocd", ("docker.io", "argoproj/argocd")),
            ("redis", ("docker.io", "redis")),
            ("mirror.example", ("mirror.example", "")),
        ];
        for (image, parts) in cases {
            assert_eq!(registry(image), parts);
        }
    }
}
