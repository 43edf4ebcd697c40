//! Several who want the same kind of write at the same time: one of them does it for all.

use std::collections::BTreeSet;

use tokio::sync::Mutex;

/// Names that wait to be written.
#[derive(Default)]
pub(super) struct Batch {
    waiting: Mutex<BTreeSet<String>>,
    turn: Mutex<()>,
}

impl Batch {
    /// Writes a name, together with all that wait when its turn comes; returns when it has been
    /// written, by whomever. What could not be written waits again.
    pub(super) async fn together<E>(
        &self,
        name: &str,
        write: impl AsyncFnOnce(&BTreeSet<String>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting.lock().await.insert(name.to_owned());
        let _turn = self.turn.lock().await;
        let ready = {
            let mut waiting = self.waiting.lock().await;
            if !waiting.contains(name) {
                // Whoever had the turn before has taken it along. Those who wait now have a turn
                // of their own.
                return Ok(());
            }
            std::mem::take(&mut *waiting)
        };
        let written = write(&ready).await;
        if written.is_err() {
            self.waiting.lock().await.extend(ready);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;

    /// Everybody wants a write; some begin while others write, and some writes fail.
    async fn written(fails: impl Fn(usize) -> bool) -> (BTreeSet<String>, usize) {
        let (batch, done, writes) = (Batch::default(), RefCell::default(), RefCell::new(0));
        let all = (0..100_u64).map(|number| {
            let (batch, done, writes, fails) = (&batch, &done, &writes, &fails);
            async move {
                tokio::time::sleep(Duration::from_millis(number * 37 % 50)).await;
                let name = number.to_string();
                let write = async |ready: &BTreeSet<String>| {
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    *writes.borrow_mut() += 1;
                    let mut done: std::cell::RefMut<'_, BTreeSet<String>> = done.borrow_mut();
                    if fails(*writes.borrow()) {
                        return Err(());
                    }
                    done.extend(ready.iter().cloned());
                    Ok(())
                };
                if batch.together(&name, write).await.is_ok() {
                    assert!(done.borrow().contains(&name), "{name} was told so, but is not");
                }
            }
        });
        futures::future::join_all(all).await;
        (done.into_inner(), writes.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_written_and_in_fewer_writes() {
        let (done, writes) = written(|_| false).await;
        assert_eq!(done.len(), 100);
        assert!(writes < 50, "{writes}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_that_a_failed_write_was_one() {
        written(|number| number % 3 == 0).await;
    }
}
