//! Lua patterns, matched within limits.
//!
//! Lua's own matcher backtracks inside one call, where no hook of Lua can stop it: a pattern of
//! fifty characters keeps it busy for years. This one asks the [`Watch`] as it goes, keeps its
//! own stack, and needs room in proportion to the pattern only. What it accepts and how it counts
//! follows gopher-lua.

mod parse;

use crate::limits::Watch;

/// A set of bytes.
type Class = [bool; 256];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    /// `?`, greedy.
    Maybe,
    /// `*`, greedy.
    Any,
    /// `+`, greedy.
    Some,
    /// `-`.
    Lazy,
}

#[derive(Debug)]
enum Item {
    Bytes(Box<Class>, Times),
    Open(usize),
    Close(usize),
    /// `()`.
    Position(usize),
    /// `%b()`.
    Balanced(u8, u8),
    /// `%1`.
    Again(usize),
    /// `$` at the end.
    End,
}

#[derive(Debug)]
pub(crate) struct Pattern {
    items: Vec<Item>,
    anchored: bool,
    captures: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    Text(usize, usize),
    Position(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) captures: Vec<Capture>,
}

/// Where to go on when what was tried did not lead to a match.
enum Choice {
    /// Give back one byte of a greedy repetition, down to `least`.
    Fewer {
        item: usize,
        least: usize,
        at: usize,
    },
    /// Take one byte more in a lazy repetition.
    More {
        item: usize,
        at: usize,
    },
    Restore {
        capture: usize,
        old: Option<Capture>,
    },
}

impl Pattern {
    pub(crate) fn anchored(&self) -> bool {
        self.anchored
    }

    pub(crate) fn parse(text: &[u8]) -> mlua::Result<Self> {
        parse::pattern(text)
    }

    /// The first match at or after `from`.
    pub(crate) fn find(
        &self,
        text: &[u8],
        from: usize,
        watch: &Watch,
    ) -> mlua::Result<Option<Match>> {
        for start in from..=text.len() {
            if let Some(found) = self.at(text, start, watch)? {
                return Ok(Some(found));
            }
            if self.anchored {
                break;
            }
        }
        Ok(None)
    }

    /// The match that begins exactly at `start`.
    fn at(&self, text: &[u8], start: usize, watch: &Watch) -> mlua::Result<Option<Match>> {
        let mut captures: Vec<Option<Capture>> = vec![None; self.captures];
        let mut choices: Vec<Choice> = Vec::new();
        let (mut item, mut at) = (0, start);
        loop {
            watch.step()?;
            let Some(next) = self.items.get(item) else {
                let captures = captures.into_iter().flatten().collect();
                return Ok(Some(Match { start, end: at, captures }));
            };
            let mut set = |capture: usize, new: Capture, choices: &mut Vec<Choice>| {
                let old = captures[capture].replace(new);
                choices.push(Choice::Restore { capture, old });
            };
            let ahead = match next {
                Item::Bytes(class, Times::Once) => {
                    text.get(at).is_some_and(|byte| class[usize::from(*byte)]).then_some(at + 1)
                }
                Item::Bytes(_, Times::Lazy) => {
                    choices.push(Choice::More { item, at });
                    Some(at)
                }
                Item::Bytes(class, times) => {
                    let most = if *times == Times::Maybe { 1 } else { usize::MAX };
                    let taken = text[at..].iter().take(most);
                    let count = taken.take_while(|byte| class[usize::from(**byte)]).count();
                    watch.steps(count)?;
                    let least = at + usize::from(*times == Times::Some);
                    (at + count >= least).then(|| {
                        choices.push(Choice::Fewer { item, least, at: at + count });
                        at + count
                    })
                }
                Item::Open(capture) => {
                    set(*capture, Capture::Text(at, usize::MAX), &mut choices);
                    Some(at)
                }
                Item::Close(capture) => {
                    if let Some(Capture::Text(from, _)) = captures[*capture] {
                        let old = captures[*capture].replace(Capture::Text(from, at));
                        choices.push(Choice::Restore { capture: *capture, old });
                    }
                    Some(at)
                }
                Item::Position(capture) => {
                    set(*capture, Capture::Position(at + 1), &mut choices);
                    Some(at)
                }
                Item::Balanced(open, close) => balanced(text, at, *open, *close, watch)?,
                Item::Again(capture) => match captures.get(*capture) {
                    Some(Some(Capture::Text(from, to))) if *to != usize::MAX => {
                        watch.steps(to - from)?;
                        text[at..].starts_with(&text[*from..*to]).then_some(at + to - from)
                    }
                    _ => return Err(mlua::Error::runtime("invalid capture index")),
                },
                Item::End => (at == text.len()).then_some(at),
            };
            if let Some(ahead) = ahead {
                (item, at) = (item + 1, ahead);
                continue;
            }
            match self.back(text, &mut choices, &mut captures, watch)? {
                Some(place) => (item, at) = place,
                None => return Ok(None),
            }
        }
    }

    /// Returns to the last choice that has something left to try.
    fn back(
        &self,
        text: &[u8],
        choices: &mut Vec<Choice>,
        captures: &mut [Option<Capture>],
        watch: &Watch,
    ) -> mlua::Result<Option<(usize, usize)>> {
        while let Some(choice) = choices.pop() {
            watch.step()?;
            match choice {
                Choice::Restore { capture, old } => captures[capture] = old,
                Choice::Fewer { item, least, at } if at > least => {
                    choices.push(Choice::Fewer { item, least, at: at - 1 });
                    return Ok(Some((item + 1, at - 1)));
                }
                Choice::Fewer { .. } => {}
                Choice::More { item, at } => {
                    let Item::Bytes(class, _) = &self.items[item] else { continue };
                    if text.get(at).is_some_and(|byte| class[usize::from(*byte)]) {
                        choices.push(Choice::More { item, at: at + 1 });
                        return Ok(Some((item + 1, at + 1)));
                    }
                }
            }
        }
        Ok(None)
    }
}

fn balanced(
    text: &[u8],
    at: usize,
    open: u8,
    close: u8,
    watch: &Watch,
) -> mlua::Result<Option<usize>> {
    if text.get(at) != Some(&open) {
        return Ok(None);
    }
    let mut depth = 1_usize;
    for (offset, byte) in text[at + 1..].iter().enumerate() {
        watch.step()?;
        if *byte == close {
            depth -= 1;
            if depth == 0 {
                return Ok(Some(at + offset + 2));
            }
        } else if *byte == open {
            depth += 1;
        }
    }
    Ok(None)
}
