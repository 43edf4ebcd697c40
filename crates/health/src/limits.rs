//! What a script may use, and the watch over it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Argo CD gives a script one second and any amount of memory. Here both are bounded, and the
/// deadline leaves room to notice that it has passed: everything ends within that second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub time: Duration,
    /// Bytes that Lua may hold. A text under construction comes on top, at most [`Self::text`].
    pub memory: usize,
    /// Bytes of the longest text that a library function may build.
    pub text: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration::from_millis(800), memory: 16 << 20, text: 4 << 20 }
    }
}

/// Which limit was exceeded. It is kept outside of Lua, so that a script cannot catch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Time,
    Text,
}

/// Watches one evaluation at a time.
#[derive(Debug)]
pub(crate) struct Watch {
    text: usize,
    deadline: Cell<Instant>,
    exceeded: Cell<Option<Exceeded>>,
    /// Calls from Rust into Lua that have not returned.
    calls: Cell<u32>,
    /// Reading the clock costs more than a step of a match, so it is read now and then.
    steps: Cell<u32>,
}

/// Steps between two looks at the clock: well below a millisecond.
const STEPS: u32 = 4096;

/// Lua counts its own calls, but these take much more of the stack than it reckons with.
const CALLS: u32 = 16;

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        Watch {
            text: limits.text,
            deadline: Cell::new(Instant::now()),
            exceeded: Cell::new(None),
            calls: Cell::new(0),
            steps: Cell::new(0),
        }
    }

    pub(crate) fn start(&self, time: Duration) {
        self.deadline.set(Instant::now() + time);
        self.exceeded.set(None);
        self.calls.set(0);
        self.steps.set(0);
    }

    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }

    /// To be called by whatever could go on for long.
    pub(crate) fn check(&self) -> mlua::Result<()> {
        if self.exceeded.get().is_none() && Instant::now() > self.deadline.get() {
            self.exceeded.set(Some(Exceeded::Time));
        }
        match self.exceeded.get() {
            None => Ok(()),
            Some(Exceeded::Time) => Err(mlua::Error::runtime("out of time")),
            Some(Exceeded::Text) => Err(mlua::Error::runtime("a text became too long")),
        }
    }

    /// One small step of something that could go on for long.
    pub(crate) fn step(&self) -> mlua::Result<()> {
        self.steps(1)
    }

    /// Work in proportion to `count` bytes or steps.
    pub(crate) fn steps(&self, count: usize) -> mlua::Result<()> {
        let count = u32::try_from(count).unwrap_or(STEPS);
        let steps = self.steps.get().saturating_add(count);
        if steps < STEPS {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.check()
    }

    /// Calls back into Lua, not too deep within each other.
    pub(crate) fn call<T>(&self, call: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
        if self.calls.get() >= CALLS {
            return Err(mlua::Error::runtime("stack overflow"));
        }
        self.calls.set(self.calls.get() + 1);
        let result = call();
        self.calls.set(self.calls.get() - 1);
        result
    }

    /// Asked before a text of this length is built.
    pub(crate) fn text(&self, length: usize) -> mlua::Result<()> {
        if length > self.text {
            self.exceeded.set(Some(Exceeded::Text));
            return self.check();
        }
        self.steps(length / 64)
    }
}
