//! Text with a name, and places in it.

use std::fmt;

/// A file's name (as the person wrote it) and its text.
#[derive(Debug, Clone)]
pub struct Source {
    pub name: String,
    text: String,
}

/// The file is not text at all, so no line of it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotText {
    pub name: String,
    pub line: usize,
    pub column: usize,
    pub found: &'static str,
}

impl Source {
    /// Takes a file's bytes, which must be UTF-8 without NUL bytes.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, NotText> {
        let name = name.into();
        let not_text = |name: String, before: &[u8], found| {
            let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            NotText {
                name,
                line: 1 + before.iter().filter(|b| **b == b'\n').count(),
                column: 1 + before.len() - line_start,
                found,
            }
        };
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(not_text(name, &[], "UTF-16"));
        }
        if let Some(at) = bytes.iter().position(|b| *b == 0) {
            return Err(not_text(name, &bytes[..at], "a NUL byte"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source { name, text }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Err(not_text(name, &error.as_bytes()[..at], "bytes that are not UTF-8"))
            }
        }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The position of a file in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceIx(u32);

/// The files that one platform is read from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<Source>,
    directory: bool,
}

impl Sources {
    /// Files given by name. A single one is a whole platform; several can only be its parts, as
    /// those of a directory are.
    #[must_use]
    pub fn new(files: Vec<Source>) -> Self {
        let directory = files.len() > 1;
        Sources { files, directory }
    }

    /// The files of a directory, each of them a part of the platform, even if it is the only one.
    #[must_use]
    pub fn directory(files: Vec<Source>) -> Self {
        Sources { files, directory: true }
    }

    /// Each file, by its name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|file| (file.name.as_str(), file.text.as_str()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SourceIx, &Source)> {
        (0..).map(SourceIx).zip(&self.files)
    }

    #[must_use]
    pub fn get(&self, file: SourceIx) -> &Source {
        &self.files[file.0 as usize]
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.directory
    }
}

/// A range of bytes in one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub file: SourceIx,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// Where a file begins: the place of a problem that concerns all of it.
    #[must_use]
    pub fn start_of(file: SourceIx) -> Self {
        Span { file, start: 0, end: 0 }
    }
}

/// A value, and where it was written.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T: fmt::Debug> fmt::Debug for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_are_refused_with_their_place() {
        let found = |bytes: &[u8]| {
            let error = Source::new("f", bytes.to_vec()).unwrap_err();
            (error.line, error.column, error.found)
        };
        assert_eq!(found(b"a: 1\nb\0c"), (2, 2, "a NUL byte"));
        assert_eq!(found(b"a\xff"), (1, 2, "bytes that are not UTF-8"));
        assert_eq!(found(b"\xff\xfea\0"), (1, 1, "UTF-16"));
    }
}
