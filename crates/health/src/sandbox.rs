//! A Lua state in which scripts can do no harm.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use crate::limits::{Limits, Watch};
use crate::{clock, number, strings};

const PRELUDE: &str = include_str!("prelude.lua");

/// Instructions of Lua between two looks at the clock. One instruction can join two texts of
/// megabytes, so there must not be many.
const INSTRUCTIONS: u32 = 100;

pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    pub(crate) watch: Rc<Watch>,
    open: Rc<Cell<bool>>,
    globals: Function,
    join: Value,
}

impl Sandbox {
    pub(crate) fn new(limits: Limits, clock: Option<i64>) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let watch = Rc::new(Watch::new(limits));
        let open = Rc::new(Cell::new(false));

        let rust = lua.create_table()?;
        rust.set("string", strings::library(&lua, &watch)?)?;
        rust.set("table_concat", strings::table_concat(&lua, &watch)?)?;
        clock::install(&lua, &rust, clock)?;
        let texts = lua.create_function(|_, value: f64| Ok(number::text(value)))?;
        rust.set("number_text", texts)?;
        let is_open = Rc::clone(&open);
        rust.set("open", lua.create_function(move |_, ()| Ok(is_open.get()))?)?;
        let checked = Rc::clone(&watch);
        let check = move |_: &Lua, values: MultiValue| checked.check().map(|()| values);
        rust.set("check", lua.create_function(check)?)?;

        let prelude = lua.load(PRELUDE).set_name("=prelude.lua").into_function()?;
        let (globals, join) = prelude.call::<(Function, Value)>((lua.globals(), rust))?;

        let hooked = Rc::clone(&watch);
        let every = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(every, move |_, _| hooked.check().map(|()| VmState::Continue))?;
        lua.set_memory_limit(limits.memory)?;
        Ok(Sandbox { lua, watch, open, globals, join })
    }

    /// Globals that no other evaluation has touched.
    pub(crate) fn globals(&self, open: bool) -> mlua::Result<Table> {
        self.open.set(open);
        self.globals.call(open)
    }

    /// What a prepared script is called with.
    pub(crate) fn join(&self) -> Value {
        self.join.clone()
    }
}
