//! Whether a Redis answers.

use super::route::{Connection, quoted};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

pub(super) async fn ask(connection: Connection) -> Result<(), String> {
    connection.exchange(PING, understand).await
}

/// One line. A Redis that wants a password is well: it has loaded its data and decides on who
/// asks. One that loads its data says so.
fn understand(answer: &[u8]) -> Option<Result<(), String>> {
    let end = answer.windows(2).position(|pair| pair == b"\r\n")?;
    let line = &answer[..end];
    let well = line == b"+PONG" || line.starts_with(b"-NOAUTH ");
    Some(if well { Ok(()) } else { Err(format!("it answers {}", quoted(line))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_redis_that_serves_is_well() {
        assert_eq!(understand(b"+PON"), None);
        assert_eq!(understand(b"+PONG\r\n"), Some(Ok(())));
        assert_eq!(understand(b"-NOAUTH Authentication required.\r\n"), Some(Ok(())));
        let loading = understand(b"-LOADING Redis is loading the dataset in memory\r\n");
        let said = "it answers \"-LOADING Redis is loading the dataset in memory\"";
        assert_eq!(loading, Some(Err(said.to_owned())));
        let other = understand(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n");
        assert_eq!(other, Some(Err("it answers \"HTTP/1.1 400 Bad Request\"".to_owned())));
    }
}
