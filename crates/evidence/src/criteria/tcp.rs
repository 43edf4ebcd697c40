//! Whether a service accepts connections.

use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::route::{Connection, shortened};

/// Through a port-forward, every connection seems to be accepted at first: a node says when
/// nobody listens, and nothing when somebody does. It takes milliseconds to find out.
const SILENCE: Duration = Duration::from_secs(2);

pub(super) async fn ask(mut connection: Connection) -> Result<(), String> {
    let Some(refused) = &mut connection.refused else { return Ok(()) };
    tokio::select! {
        biased;
        Ok(told) = refused => return Err(shortened(&told)),
        read = connection.stream.read_u8() => if read.is_ok() {
            return Ok(());
        },
        () = tokio::time::sleep(SILENCE) => return Ok(()),
    }
    // It has hung up at once, which is its good right, or nobody was there.
    connection.refusal().await.map_or(Ok(()), Err)
}
