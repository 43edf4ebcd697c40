//! Output that must not end a run: a disk may be full, a reader may be gone.

use std::fmt;
use std::io::{self, Write};

/// Writes lines until one cannot be written, and counts from there on. So what was written has
/// no gaps: it is the beginning.
pub(crate) struct LossyWriter<W = Box<dyn Write>> {
    out: W,
    error: Option<io::Error>,
    lost: usize,
}

/// Why the rest was not written, and how much that is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    lines: usize,
    why: String,
}

impl<W: Write> LossyWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        LossyWriter { out, error: None, lost: 0 }
    }

    /// Whole lines, at once.
    pub(crate) fn write(&mut self, text: &str) {
        self.attempt(|out| out.write_all(text.as_bytes()));
        if self.error.is_some() {
            self.lost += text.lines().count();
        }
    }

    /// What nobody misses, such as a screen that is drawn again anyway.
    pub(crate) fn draw(&mut self, text: &str) {
        self.attempt(|out| out.write_all(text.as_bytes()));
    }

    /// Something else that has to be done with the output before more is written to it.
    pub(crate) fn attempt(&mut self, act: impl FnOnce(&mut W) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = act(&mut self.out).and_then(|()| self.out.flush()).err();
        }
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        let error = self.error.as_ref()?;
        Some(Loss { lines: self.lost, why: error.to_string() })
    }
}

impl Loss {
    /// As a sentence; `place` is where the lines should have gone.
    pub(crate) fn told(&self, place: impl fmt::Display) -> String {
        let Loss { lines, why } = self;
        let were = if *lines == 1 { "line was" } else { "lines were" };
        format!("{lines} {were} not written to {place}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes more.
    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            self.written.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn disk(room: usize) -> LossyWriter<Disk> {
        LossyWriter::new(Disk { room, written: Vec::new() })
    }

    #[test]
    fn all_is_written_where_there_is_room() {
        let mut writer = disk(100);
        writer.write("one\n");
        writer.draw("screen");
        writer.write("two\nthree\n");
        assert_eq!(writer.out.written, b"one\nscreentwo\nthree\n");
        assert_eq!(writer.loss(), None);
    }

    #[test]
    fn nothing_is_written_after_what_could_not_be() {
        let mut writer = disk(8);
        for line in ["one\n", "two and more\n", "three\n", "four\nfive\n"] {
            writer.write(line);
        }
        // Somebody makes room: a log with a gap would be worse than a short one.
        writer.out.room = 100;
        writer.write("six\n");
        assert_eq!(writer.out.written, b"one\ntwo ");
        let loss = writer.loss().expect("a loss");
        assert_eq!(loss.told("disk"), "5 lines were not written to disk: no storage space");
    }

    #[test]
    fn screens_are_not_counted() {
        let mut writer = disk(0);
        writer.draw("a screen\nof two lines\n");
        writer.write("the last line\n");
        let loss = writer.loss().expect("a loss");
        assert_eq!(loss.told("stdout"), "1 line was not written to stdout: no storage space");
    }
}
