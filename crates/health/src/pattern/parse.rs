//! From the text of a pattern to its items.

use super::{Class, Item, Pattern, Times};

pub(super) fn pattern(text: &[u8]) -> mlua::Result<Pattern> {
    let anchored = text.first() == Some(&b'^');
    let at = usize::from(anchored);
    let mut parser = Parser { text, at, open: Vec::new(), captures: 0, items: Vec::new() };
    parser.run()?;
    Ok(Pattern { items: parser.items, anchored, captures: parser.captures })
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    open: Vec<usize>,
    captures: usize,
    items: Vec<Item>,
}

fn malformed(why: &str) -> mlua::Error {
    mlua::Error::runtime(format!("malformed pattern ({why})"))
}

impl Parser<'_> {
    fn run(&mut self) -> mlua::Result<()> {
        while let Some(byte) = self.next() {
            match byte {
                b'%' => self.escaped()?,
                b'[' => {
                    let class = self.set()?;
                    self.bytes(class);
                }
                b'.' => self.bytes(Box::new([true; 256])),
                b'(' if self.peek() == Some(b')') => {
                    self.at += 1;
                    self.items.push(Item::Position(self.captures));
                    self.captures += 1;
                }
                b'(' => {
                    self.items.push(Item::Open(self.captures));
                    self.open.push(self.captures);
                    self.captures += 1;
                }
                b')' => {
                    let capture = self.open.pop().ok_or_else(|| malformed("invalid ')'"))?;
                    self.items.push(Item::Close(capture));
                }
                b'$' if self.at == self.text.len() && self.open.is_empty() => {
                    self.items.push(Item::End);
                }
                byte => self.bytes(one(byte)),
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err(malformed("unfinished capture")) }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// A class, and how often.
    fn bytes(&mut self, class: Box<Class>) {
        let times = match self.peek() {
            Some(b'*') => Times::Any,
            Some(b'+') => Times::Some,
            Some(b'-') => Times::Lazy,
            Some(b'?') => Times::Maybe,
            _ => Times::Once,
        };
        self.at += usize::from(times != Times::Once);
        self.items.push(Item::Bytes(class, times));
    }

    fn escaped(&mut self) -> mlua::Result<()> {
        match self.next() {
            None => return Err(malformed("ends with '%'")),
            Some(b'0') => return Err(mlua::Error::runtime("invalid capture index")),
            Some(digit @ b'1'..=b'9') => self.items.push(Item::Again(usize::from(digit - b'1'))),
            Some(b'b') => match (self.next(), self.next()) {
                (Some(open), Some(close)) => self.items.push(Item::Balanced(open, close)),
                _ => return Err(malformed("missing arguments to '%b'")),
            },
            Some(letter) => self.bytes(named(letter)),
        }
        Ok(())
    }

    fn set(&mut self) -> mlua::Result<Box<Class>> {
        let mut class = Box::new([false; 256]);
        let negated = self.peek() == Some(b'^');
        self.at += usize::from(negated);
        let mut first = true;
        loop {
            let byte = self.next().ok_or_else(|| malformed("missing ']'"))?;
            match byte {
                b']' if !first => break,
                b'%' => {
                    let letter = self.next().ok_or_else(|| malformed("missing ']'"))?;
                    add(&mut class, &named(letter));
                }
                low => {
                    let range = self.peek() == Some(b'-')
                        && self.text.get(self.at + 1).is_some_and(|end| *end != b']');
                    if range {
                        let high = self.text[self.at + 1];
                        self.at += 2;
                        (low..=high).for_each(|byte| class[usize::from(byte)] = true);
                    } else {
                        class[usize::from(low)] = true;
                    }
                }
            }
            first = false;
        }
        if negated {
            class.iter_mut().for_each(|member| *member = !*member);
        }
        Ok(class)
    }
}

fn one(byte: u8) -> Box<Class> {
    let mut class = Box::new([false; 256]);
    class[usize::from(byte)] = true;
    class
}

fn add(class: &mut Class, other: &Class) {
    class.iter_mut().zip(other).for_each(|(member, other)| *member |= other);
}

/// `%a`, `%D` and so on; any other character stands for itself.
fn named(letter: u8) -> Box<Class> {
    let member: fn(&u8) -> bool = match letter.to_ascii_lowercase() {
        b'a' => u8::is_ascii_alphabetic,
        b'c' => u8::is_ascii_control,
        b'd' => u8::is_ascii_digit,
        b'l' => u8::is_ascii_lowercase,
        b'p' => u8::is_ascii_punctuation,
        b's' => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b'u' => u8::is_ascii_uppercase,
        b'w' => u8::is_ascii_alphanumeric,
        b'x' => u8::is_ascii_hexdigit,
        b'z' => |byte| *byte == 0,
        _ => return one(letter),
    };
    let mut class = Box::new([false; 256]);
    for byte in 0..=u8::MAX {
        class[usize::from(byte)] = member(&byte) != letter.is_ascii_uppercase();
    }
    class
}
