//! Argo CD's API server, as the file says it: an address, certificates, a path.

use std::net::Ipv6Addr;

use tiphys_model::api_server;

use crate::decode::Decode;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::yaml::Node;

/// Where a server is, and whether its address says how to talk to it.
#[derive(Debug)]
pub(crate) struct ServerText {
    pub(crate) scheme: Option<Scheme>,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// One or more certificates in PEM.
#[derive(Debug)]
pub(crate) struct Certificates(pub(crate) String);

/// Nothing, or a path that begins with a slash and does not end with one.
#[derive(Debug)]
pub(crate) struct RootPath(pub(crate) String);

/// Why a text is not the address of a server.
#[derive(Debug, PartialEq, Eq)]
enum AddressProblem {
    Scheme,
    UserInfo,
    Path,
    Port,
    Host,
}

impl AddressProblem {
    /// What is said at the place, and what to do about it.
    fn explain(&self) -> (&'static str, &'static str) {
        match self {
            AddressProblem::Scheme => (
                "unknown scheme: only `https://` and `http://` are supported",
                "for example `argocd.example.org`",
            ),
            AddressProblem::UserInfo => (
                "has a user name or a password",
                "remove everything before the host: runs use a token, see `tokenSecret`",
            ),
            AddressProblem::Path => {
                ("has a path", "move the path to `rootPath` and keep the host and the port here")
            }
            AddressProblem::Port => {
                ("the port must be a number from 1 to 65535", "for example `8443`")
            }
            AddressProblem::Host => (
                "the host must be a DNS name or an IP address",
                "for example `argocd.example.org` or `[2001:db8::1]:8443`",
            ),
        }
    }
}

impl ServerText {
    fn parse(text: &str) -> Result<Self, AddressProblem> {
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(_) => return Err(AddressProblem::Scheme),
        };
        let authority = match rest.split_once(['/', '?', '#']) {
            None => rest,
            Some((authority, "")) if rest.ends_with('/') => authority,
            Some(_) => return Err(AddressProblem::Path),
        };
        if authority.contains('@') {
            return Err(AddressProblem::UserInfo);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => ipv6(rest)?,
            None => named(authority)?,
        };
        Ok(ServerText { scheme, host: host.to_owned(), port: port.map(parse_port).transpose()? })
    }
}

/// The address, whose first bracket is gone, and the port.
fn ipv6(rest: &str) -> Result<(&str, Option<&str>), AddressProblem> {
    let (address, after) = rest.split_once(']').ok_or(AddressProblem::Host)?;
    address.parse::<Ipv6Addr>().map_err(|_| AddressProblem::Host)?;
    let port = after.strip_prefix(':');
    if port.is_none() && !after.is_empty() {
        return Err(AddressProblem::Host);
    }
    Ok((address, port))
}

/// A DNS name or an IPv4 address, and the port.
fn named(authority: &str) -> Result<(&str, Option<&str>), AddressProblem> {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if !host.split('.').all(is_label) {
        return Err(AddressProblem::Host);
    }
    Ok((host, port))
}

/// One part of a DNS name or of an IPv4 address.
fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let edge = |c: char| c != '-';
    (1..=63).contains(&label.len())
        && label.bytes().all(inner)
        && label.starts_with(edge)
        && label.ends_with(edge)
}

fn parse_port(text: &str) -> Result<u16, AddressProblem> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port > 0);
    port.ok_or(AddressProblem::Port)
}

impl Decode for ServerText {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        match ServerText::parse(&text) {
            Ok(server) => Some(server),
            Err(problem) => {
                let (label, hint) = problem.explain();
                // It is not quoted again: there may be a password in it.
                let title = "`server` must be `HOST`, `HOST:PORT` or `https://HOST:PORT`";
                let masked = matches!(problem, AddressProblem::UserInfo);
                problems.push(Diagnostic::new(title, node.span(), label).hint(hint).masked(masked));
                None
            }
        }
    }
}

impl Decode for Certificates {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        if has_certificates(&text) {
            return Some(Certificates(text));
        }
        let title = "`ca` is not a PEM certificate";
        let label = "no complete block from `-----BEGIN CERTIFICATE-----` to \
                     `-----END CERTIFICATE-----`";
        problems.push(
            Diagnostic::new(title, node.span(), label)
                .hint("write `ca: |` and indent the lines of the PEM file below it"),
        );
        None
    }
}

/// Whether there is a certificate in it, and no torn one. What is inside of them, TLS finds out.
fn has_certificates(text: &str) -> bool {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut blocks = text.split(BEGIN).skip(1).peekable();
    let is_base64 = |body: &str| {
        let digits: String = body.split_ascii_whitespace().collect();
        let data = digits.trim_end_matches('=');
        let padding = digits.len() - data.len();
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        !data.is_empty()
            && padding <= 2
            && digits.len().is_multiple_of(4)
            && data.bytes().all(digit)
    };
    blocks.peek().is_some()
        && blocks.all(|block| block.split_once(END).is_some_and(|(body, _)| is_base64(body)))
}

impl Decode for RootPath {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if text.bytes().all(plain) {
            return Some(RootPath(api_server::root_path(&text)));
        }
        let title = format!("{} is not a valid root path", quoted(&text));
        let label = "use letters, digits, `-`, `.`, `_`, `~` and `/`";
        problems.push(Diagnostic::new(title, node.span(), label).hint("for example `/argocd`"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_or_without_scheme_and_port() {
        let read = |text: &str| {
            let server = ServerText::parse(text)?;
            Ok((server.scheme, server.host, server.port))
        };
        let host = || "argocd.example.org".to_owned();
        assert_eq!(read("argocd.example.org"), Ok((None, host(), None)));
        assert_eq!(read("argocd.example.org:8443"), Ok((None, host(), Some(8443))));
        assert_eq!(read("https://argocd.example.org/"), Ok((Some(Scheme::Https), host(), None)));
        let address = "2001:db8::1".to_owned();
        assert_eq!(read("http://[2001:db8::1]:80"), Ok((Some(Scheme::Http), address, Some(80))));
        for (text, problem) in [
            ("ftp://argocd.example.org", AddressProblem::Scheme),
            ("https://me:secret@argocd.example.org", AddressProblem::UserInfo),
            ("argocd.example.org/argocd", AddressProblem::Path),
            ("https://argocd.example.org/?a=b", AddressProblem::Path),
            ("argocd.example.org:0", AddressProblem::Port),
            ("argocd.example.org:+80", AddressProblem::Port),
            ("argocd.example.org:", AddressProblem::Port),
            ("https://", AddressProblem::Host),
            ("argocd..org", AddressProblem::Host),
            ("[2001:db8::1", AddressProblem::Host),
            ("[argocd.example.org]", AddressProblem::Host),
            ("2001:db8::1", AddressProblem::Port),
        ] {
            assert_eq!(read(text), Err(problem), "{text}");
        }
    }

    #[test]
    fn certificates_are_whole_blocks_of_base64() {
        let block = "-----BEGIN CERTIFICATE-----\nMIIB\nAA==\n-----END CERTIFICATE-----\n";
        assert!(has_certificates(block) && has_certificates(&format!("# mine\n{block}{block}")));
        for text in [
            "MIIBAA==",
            "-----BEGIN CERTIFICATE-----\nMIIB\n",
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nMII!\n-----END CERTIFICATE-----\n",
            "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
        ] {
            assert!(!has_certificates(text), "{text}");
        }
        assert!(!has_certificates(&format!("{block}-----BEGIN CERTIFICATE-----\nMIIB\n")));
    }
}
