//! YAML that tests put together.

use std::fmt::Display;

use tiphys_spec::{Source, Sources};

/// A YAML node as it will be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yaml {
    /// Written as it is: what it means is up to the reader.
    Plain(String),
    Quoted(String),
    List(Vec<Yaml>),
    /// A list whose order means nothing.
    Set(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    pub(crate) fn plain(value: impl Display) -> Self {
        Yaml::Plain(format!("{value}"))
    }

    pub(crate) fn quoted(value: &str) -> Self {
        Yaml::Quoted(value.to_owned())
    }

    pub(crate) fn map<const N: usize>(fields: [(&str, Yaml); N]) -> Self {
        Yaml::Map(fields.map(|(key, value)| (key.to_owned(), value)).into())
    }

    /// The node in block style, as people write it.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write("", &mut out);
        out
    }

    fn write(&self, indent: &str, out: &mut String) {
        let deeper = format!("{indent}  ");
        match self {
            Yaml::Plain(_) | Yaml::Quoted(_) => *out += &format!("{indent}{}\n", self.line()),
            Yaml::List(items) | Yaml::Set(items) => {
                for item in items {
                    *out += &format!("{indent}-");
                    item.write_after(&deeper, out);
                }
            }
            Yaml::Map(fields) => {
                for (key, value) in fields {
                    *out += &format!("{indent}{key}:");
                    value.write_after(&deeper, out);
                }
            }
        }
    }

    /// What stands behind `key:` or `-`.
    fn write_after(&self, indent: &str, out: &mut String) {
        match self {
            Yaml::List(items) | Yaml::Set(items) if items.is_empty() => *out += " []\n",
            Yaml::Map(fields) if fields.is_empty() => *out += " {}\n",
            Yaml::Plain(_) | Yaml::Quoted(_) => *out += &format!(" {}\n", self.line()),
            Yaml::List(_) | Yaml::Set(_) | Yaml::Map(_) => {
                out.push('\n');
                self.write(indent, out);
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Yaml::Plain(text) => text.clone(),
            // The escapes of JSON are escapes of YAML too.
            Yaml::Quoted(text) => serde_json::to_string(text).unwrap(),
            Yaml::List(_) | Yaml::Set(_) | Yaml::Map(_) => unreachable!("not written on one line"),
        }
    }
}

/// The texts as files given by name; one text is a platform of its own.
pub(crate) fn sources<T: AsRef<str>>(texts: &[T]) -> Sources {
    Sources::new(files(texts))
}

/// The texts as the files of a directory.
pub(crate) fn directory<T: AsRef<str>>(texts: &[T]) -> Sources {
    Sources::directory(files(texts))
}

fn files<T: AsRef<str>>(texts: &[T]) -> Vec<Source> {
    let source = |(number, text): (usize, &T)| {
        Source::new(format!("{number:02}.yaml"), text.as_ref().into()).unwrap()
    };
    texts.iter().enumerate().map(source).collect()
}
