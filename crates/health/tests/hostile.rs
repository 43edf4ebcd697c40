//! Scripts that want more than they may have. Each ends within a second and 32 MiB, and the error
//! names it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tiphys_health::{Evaluator, Limits, Script};

/// Name, what the error must say, the script.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("loop", "longer than", "while true do end"),
    ("loop-of-pcall", "longer than", "while true do pcall(function() while true do end end) end"),
    (
        "loop-of-xpcall",
        "longer than",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
    ),
    ("loop-of-errors", "longer than", "while true do pcall(error, 'x') end"),
    ("loop-of-goto", "longer than", "::again:: goto again"),
    (
        "loop-in-metatable",
        "longer than",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
    ),
    ("loop-in-sort", "longer than", "table.sort({3, 2, 1}, function() while true do end end)"),
    ("loop-in-gsub", "longer than", "return ('x'):gsub('x', function() while true do end end)"),
    (
        "loop-in-concat",
        "longer than",
        "local m = setmetatable({}, {__concat = function() while true do end end}) return 1 .. m",
    ),
    (
        "loop-in-tostring",
        "longer than",
        "tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    ),
    (
        "loop-of-texts",
        "longer than",
        "local s = ('x'):rep(4e6) while true do s:upper() s:lower() s:reverse() end",
    ),
    (
        "loop-of-comparisons",
        "longer than",
        "local a, b = ('x'):rep(2e6), ('x'):rep(2e6) while true do if a < b then return end end",
    ),
    (
        "loop-of-joins",
        "longer than",
        "local a = ('x'):rep(2e6) while true do local b = a .. 'x' end",
    ),
    (
        "finalizer",
        "finalizers",
        "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()",
    ),
    ("pattern-find", "longer than", "return ('a'):rep(60):find(('a-'):rep(60) .. 'b')"),
    ("pattern-match", "longer than", "return ('a'):rep(5000):match(('.*'):rep(20) .. 'b')"),
    (
        "pattern-gmatch",
        "longer than",
        "for x in ('a'):rep(60):gmatch(('a?'):rep(60) .. 'b') do end",
    ),
    ("pattern-gsub", "longer than", "return ('a'):rep(60):gsub(('a*'):rep(60) .. 'b', '')"),
    ("pattern-balance", "longer than", "local s = ('('):rep(1e6) return s:find('%b()')"),
    (
        "pattern-plain",
        "longer than",
        "local s = ('a'):rep(2e6) while true do s:find(('a'):rep(1e6) .. 'b', 1, true) end",
    ),
    ("rep", "text of more than", "return ('x'):rep(1e9)"),
    ("rep-of-function", "text of more than", "return string.rep('x', 1e15)"),
    ("rep-caught", "text of more than", "pcall(string.rep, 'x', 1e9) while true do end"),
    (
        "format",
        "text of more than",
        "local s = '%999999s' local t = s for i = 1, 9 do t = t .. s end return t:format(1,2,3,4,5,6,7,8,9,10)",
    ),
    ("gsub-grows", "text of more than", "return ('x'):rep(1e5):gsub('x', ('y'):rep(1e5))"),
    (
        "table-concat",
        "text of more than",
        "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1e4) end return table.concat(t, t[1])",
    ),
    ("doubling", "MiB of memory", "local s = 'x' while true do s = s .. s end"),
    ("table", "MiB of memory", "local t = {} for i = 1, 1e9 do t[i] = i end"),
    ("tables", "MiB of memory", "local t = {} while true do t = {t} end"),
    ("keys", "MiB of memory", "local t = {} for i = 1, 1e9 do t[('k'):rep(500) .. i] = true end"),
    (
        "closures",
        "MiB of memory",
        "local f = function() end while true do local g = f f = function() return g end end",
    ),
    ("recursion", "", "local function f() return 1 + f() end return f()"),
    ("recursion-of-pcall", "", "local function f() local ok, e = pcall(f) error(e) end f()"),
    ("recursion-of-gsub", "", "local function f() return ('x'):gsub('x', f) end return f()"),
    (
        "recursion-of-index",
        "",
        "local t = {} setmetatable(t, {__index = t, __newindex = t}) return t.x",
    ),
    ("nesting", "invalid Lua", "NESTING"),
    ("unpack", "", "return unpack({}, 1, 1e8)"),
    ("bytes", "", "return ('x'):rep(4e6):byte(1, -1)"),
    ("verdict-too-deep", "", "local t = {} for i = 1, 1e5 do t = {a = t} end return t"),
    ("os-execute", "nil value", "return os.execute('true')"),
    ("os-exit", "nil value", "os.exit(0)"),
    ("os-getenv", "nil value", "return os.getenv('HOME')"),
    ("io", "nil value", "return io.open('/etc/passwd')"),
    ("require", "not found", "return require('io')"),
    ("package", "nil value", "return package.loaded"),
    ("debug", "nil value", "return debug.getregistry()"),
    ("load", "nil value", "return load('return 1')()"),
    ("loadstring", "nil value", "return loadstring('return 1')()"),
    ("dofile", "nil value", "return dofile('/etc/passwd')"),
    ("dump", "nil value", "return string.dump(function() end)"),
    ("bytecode", "invalid Lua", "\u{1b}Lua"),
    ("methods-of-texts", "", "getmetatable('').__index = nil"),
];

const CHILD: &str = "TIPHYS_HOSTILE";
const SECOND: u128 = 1000;
const KIB: u64 = 32 << 10;

fn script(name: &str) -> Script {
    let (_, _, text) = SCRIPTS.iter().find(|(known, ..)| *known == name).unwrap();
    let nested = format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let text = if *text == "NESTING" { &nested } else { *text };
    Script { name: format!("acme.org/Thing/{name}.lua"), text: text.into(), open_libs: true }
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    peak.split_whitespace().next().unwrap().parse().unwrap()
}

/// How long this thread has been on a core: what other programs do in between does not count.
fn on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Runs in a process of its own, which then knows its peak memory.
#[test]
fn child() {
    let Ok(name) = std::env::var(CHILD) else { return };
    let mut evaluator = Evaluator::new(Limits::default());
    let harmless = Script { name: "harmless".into(), text: "return obj".into(), open_libs: true };
    evaluator.evaluate(&harmless, &json!({})).unwrap();
    let before = peak();
    let start = on_core();
    let result = evaluator.evaluate(&script(&name), &json!({"status": {}}));
    let (took, grown) = (on_core().saturating_sub(start).as_millis(), peak() - before);
    let error = result.expect_err("a hostile script has no verdict").to_string();
    // The evaluator must not be the worse for it.
    evaluator.evaluate(&harmless, &json!({})).unwrap();
    println!("{CHILD} {took} {grown} {error}");
}

fn run(name: &str) -> (u128, u64, String) {
    let me = std::env::current_exe().unwrap();
    let output = Command::new(me)
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(at) = text.find(&format!("{CHILD} ")) else {
        panic!("{name}: {}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    };
    let line = text[at..].lines().next().unwrap();
    let parts: Vec<&str> = line.splitn(4, ' ').collect();
    (parts[1].parse().unwrap(), parts[2].parse().unwrap(), parts[3].to_owned())
}

#[test]
fn each_ends_in_time_within_memory_and_by_name() {
    for (name, says, _) in SCRIPTS {
        let (took, grown, error) = run(name);
        println!("{name:20} {took:4} ms {:3} MiB  {error}", grown >> 10);
        assert!(took < SECOND, "{name}: {took} ms");
        assert!(grown <= KIB, "{name}: {grown} KiB");
        assert!(error.starts_with(&format!("acme.org/Thing/{name}.lua")), "{error}");
        // Near its limit of memory a script spends its time on collecting garbage, so on a slow
        // machine that of time may come first.
        let late = *says == "MiB of memory" && error.contains("longer than");
        assert!(error.contains(says) || late, "{name}: {error}");
    }
}
