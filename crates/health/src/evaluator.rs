//! Runs one script on one object.

use std::collections::HashMap;
use std::sync::Arc;

use mlua::{Function, MultiValue, Value};
use serde_json::Value as Json;

use crate::limits::{Exceeded, Limits};
use crate::sandbox::Sandbox;
use crate::{Script, Verdict, concat, object};

/// Scripts come from people; nobody has thousands. Beyond this the oldest state is given up.
const CACHED: usize = 1024;
/// What Lua calls every script: it would cut a long name, and errors bring the right one.
const CHUNK: &str = "script";
/// Above this, what an evaluation left behind is collected at once.
const LITTER: usize = 2 << 20;

/// Keeps a Lua state and the compiled scripts from one evaluation to the next; each evaluation
/// has globals of its own. One evaluator belongs to one thread.
pub struct Evaluator {
    limits: Limits,
    clock: Option<i64>,
    /// None after an evaluation that exceeded its limits: whatever it left is thrown away.
    sandbox: Option<Sandbox>,
    /// By text, so that a changed script is compiled anew.
    compiled: HashMap<Arc<str>, Function>,
}

/// Why a script has no verdict. Argo CD shows the object as Unknown then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{script}{}: {because}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct EvaluationError {
    /// Which script.
    pub script: String,
    /// Where in it, as far as Lua says.
    pub line: Option<u32>,
    pub because: FailedBecause,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailedBecause {
    #[error("invalid Lua: {0}")]
    Syntax(String),
    #[error("{0}")]
    Script(String),
    #[error("the script ran for longer than {} ms", .0.as_millis())]
    Time(std::time::Duration),
    #[error("the script needs more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
    #[error("the script builds a text of more than {} MiB", .0 >> 20)]
    Text(usize),
}

impl Evaluator {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Evaluator { limits, clock: None, sandbox: None, compiled: HashMap::new() }
    }

    /// Lets `os.time` stand still, at seconds since 1970.
    #[must_use]
    pub fn with_clock(mut self, seconds: i64) -> Self {
        self.clock = Some(seconds);
        self.sandbox = None;
        self
    }

    /// What the script says of the object.
    pub fn evaluate(&mut self, script: &Script, object: &Json) -> Result<Verdict, EvaluationError> {
        let result = self.run(script, object);
        let failed = |line, because| EvaluationError { script: script.name.clone(), line, because };
        match result {
            Ok(Ok(verdict)) => Ok(verdict),
            Ok(Err(why)) => Err(failed(None, FailedBecause::Script(why))),
            Err(error) => {
                let (line, because) = self.because(&error);
                if !matches!(because, FailedBecause::Script(_) | FailedBecause::Syntax(_)) {
                    self.reset();
                }
                Err(failed(line, because))
            }
        }
    }

    /// The outer result: did it run. The inner one: could its value be read.
    fn run(&mut self, script: &Script, object: &Json) -> mlua::Result<Result<Verdict, String>> {
        if self.compiled.len() >= CACHED {
            self.reset();
        }
        let sandbox = match &mut self.sandbox {
            Some(sandbox) => sandbox,
            none => none.insert(Sandbox::new(self.limits, self.clock)?),
        };
        sandbox.watch.start(self.limits.time);
        let function = if let Some(function) = self.compiled.get(&script.text) {
            function.clone()
        } else {
            let prepared = concat::prepared(&script.text);
            let chunk = sandbox.lua.load(prepared).set_name(format!("={CHUNK}"));
            let function = chunk.set_mode(mlua::chunk::ChunkMode::Text).into_function()?;
            self.compiled.insert(Arc::clone(&script.text), function.clone());
            function
        };
        let globals = sandbox.globals(script.open_libs)?;
        globals.raw_set("obj", object::into_lua(&sandbox.lua, object)?)?;
        globals.raw_set("actionParams", sandbox.lua.create_table()?)?;
        function.set_environment(globals)?;
        let returned: MultiValue = function.call(sandbox.join())?;
        let last: Option<&Value> = returned.iter().next_back();
        let verdict = Verdict::read(last);
        drop(returned);
        if sandbox.lua.used_memory() > LITTER {
            sandbox.lua.gc_collect()?;
        }
        Ok(verdict)
    }

    fn because(&self, error: &mlua::Error) -> (Option<u32>, FailedBecause) {
        let exceeded = self.sandbox.as_ref().and_then(|sandbox| sandbox.watch.exceeded());
        match (exceeded, root(error)) {
            (Some(Exceeded::Time), _) => (None, FailedBecause::Time(self.limits.time)),
            (Some(Exceeded::Text), _) => (None, FailedBecause::Text(self.limits.text)),
            (None, mlua::Error::MemoryError(_)) => {
                (None, FailedBecause::Memory(self.limits.memory))
            }
            (None, mlua::Error::SyntaxError { message, .. }) => {
                let (line, message) = placed(message);
                (line, FailedBecause::Syntax(message))
            }
            (None, mlua::Error::RuntimeError(message)) => {
                let (line, message) = placed(message);
                (line, FailedBecause::Script(message))
            }
            (None, other) => {
                let (line, message) = placed(&other.to_string());
                (line, FailedBecause::Script(message))
            }
        }
    }

    fn reset(&mut self) {
        self.compiled.clear();
        self.sandbox = None;
    }
}

fn root(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => root(cause),
        error => error,
    }
}

/// What Lua says, and of which line. Behind it comes a stack trace, which Argo CD leaves out too.
fn placed(message: &str) -> (Option<u32>, String) {
    let message = message.lines().next().unwrap_or_default();
    let place = message.strip_prefix(CHUNK).and_then(|rest| rest.strip_prefix(':'));
    let split = place.and_then(|rest| rest.split_once(": "));
    match split.and_then(|(line, what)| Some((line.parse().ok()?, what))) {
        Some((line, what)) => (Some(line), what.to_owned()),
        None => (None, message.to_owned()),
    }
}
