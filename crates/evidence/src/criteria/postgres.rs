//! Whether a PostgreSQL lets clients log in.
//!
//! The beginning of every session: we say who we are, and the server says how we are to prove it.
//! A server that starts, recovers or shuts down says that instead. Nobody logs in, so no user and
//! no password are needed.

use super::route::{Connection, quoted};

const PROTOCOL_3_0: u32 = 196_608;

pub(super) async fn ask(connection: Connection) -> Result<(), String> {
    connection.exchange(&startup_message(), understand).await
}

fn startup_message() -> Vec<u8> {
    let parameters = b"user\0tiphys\0database\0postgres\0application_name\0tiphys\0\0";
    let length = u32::try_from(8 + parameters.len()).unwrap_or_default();
    [&length.to_be_bytes()[..], &PROTOCOL_3_0.to_be_bytes(), parameters].concat()
}

/// The first message that says yes or no.
fn understand(mut answer: &[u8]) -> Option<Result<(), String>> {
    loop {
        let (kind, rest) = answer.split_first()?;
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
        match kind {
            // A request for authentication, whatever kind of it.
            b'R' => return Some(Ok(())),
            b'E' => {
                let fields = rest.get(4..usize::try_from(length).ok()?)?;
                return Some(refusal(fields));
            }
            // A notice, or which parts of the protocol it does not know: something follows.
            b'N' | b'v' => answer = rest.get(usize::try_from(length).ok()?..)?,
            _ => {
                let answer = quoted(answer);
                return Some(Err(format!("not a PostgreSQL server: it answers {answer}")));
            }
        }
    }
}

/// Fields of a letter and a text, each with a zero at its end.
fn refusal(fields: &[u8]) -> Result<(), String> {
    let field = |letter: u8| {
        let mut all = fields.split(|byte| *byte == 0);
        let found = all.find(|field| field.first() == Some(&letter))?;
        Some(String::from_utf8_lossy(&found[1..]).into_owned())
    };
    let code = field(b'C').unwrap_or_default();
    // Class 28: it has decided that we may not log in, so it lets others.
    if code.starts_with("28") {
        return Ok(());
    }
    let unexplained = || "it refused the connection without a reason".to_owned();
    let message = field(b'M').unwrap_or_else(unexplained);
    Err(format!("{message} ({code})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn the_startup_message_says_its_length() {
        let message = startup_message();
        let said = u32::from_be_bytes(message[..4].try_into().unwrap());
        assert_eq!(usize::try_from(said).unwrap(), message.len());
        assert_eq!(message[4..8], [0, 3, 0, 0]);
    }

    #[test]
    fn only_a_server_that_lets_clients_log_in_is_well() {
        let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert_eq!(understand(&scram), Some(Ok(())));
        assert_eq!(understand(&scram[..4]), None);
        let after = [message(b'v', &[0; 8]), message(b'N', b"M-\0\0"), scram].concat();
        assert_eq!(understand(&after), Some(Ok(())));
        let starting =
            message(b'E', b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0");
        let said = "the database system is starting up (57P03)";
        assert_eq!(understand(&starting), Some(Err(said.to_owned())));
        assert_eq!(understand(&starting[..20]), None);
        let full = message(b'E', b"SFATAL\0C53300\0Msorry, too many clients already\0\0");
        let said = "sorry, too many clients already (53300)";
        assert_eq!(understand(&full), Some(Err(said.to_owned())));
        let not_us = message(b'E', b"SFATAL\0C28000\0Mno pg_hba.conf entry for host\0\0");
        assert_eq!(understand(&not_us), Some(Ok(())));
        let web = understand(b"HTTP/1.1 400 Bad Request\r\n");
        let said = "not a PostgreSQL server: it answers \"HTTP/1.1 400 Bad Request\"";
        assert_eq!(web, Some(Err(said.to_owned())));
    }
}
