//! Expressions and what gopher-lua 1.1.1 makes of them: each value was printed by it, in UTC and
//! with its libraries open.

use serde_json::json;
use tiphys_health::{Evaluator, Limits, Script};
use tiphys_model::Health;

#[rustfmt::skip]
const EXPRESSIONS: &[(&str, &str)] = &[
    (r#"1 .. """#, "1"),
    (r#"(10 / 2) .. """#, "5"),
    (r#"(1 / 3) .. """#, "0.3333333333333333"),
    (r#"1e15 .. "x""#, "1000000000000000x"),
    (r#"1234567.5 .. """#, "1.2345675e+06"),
    (r#"2^53 .. """#, "9007199254740992"),
    (r#"(0/0) .. """#, "NaN"),
    (r#"(1/0) .. """#, "+Inf"),
    ("1 .. 2 .. 3", "123"),
    ("tostring(1e20)", "1e+20"),
    ("tostring(-0.5)", "-0.5"),
    ("tostring(nil)", "nil"),
    ("tostring(true)", "true"),
    (r#"#{1, 2, 3} .. """#, "3"),
    (r#"table.getn({1, 2}) .. """#, "2"),
    (r#"table.maxn({1, 2, [7] = 1}) .. """#, "7"),
    (r#"table.concat({1, 2.5, "x"}, ",")"#, "1,2.5,x"),
    (r#"table.concat({"a", "b", "c"}, "-", 2, 3)"#, "b-c"),
    ("table.concat({})", ""),
    (r#"(function() local t = {3, 1, 2} table.sort(t) return table.concat(t, " ") end)()"#, "1 2 3"),
    (r#"(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t, " ") end)()"#, "3 2 1"),
    (r#"(function() local t = {1, 2, 3} table.insert(t, 1, 0) table.remove(t) return table.concat(t, " ") end)()"#, "0 1 2"),
    (r#"(function() local s = "" for i = 1, 3 do if i == 2 then goto continue end s = s .. i ::continue:: end return s end)()"#, "13"),
    (r#"(function() local s = "" for i = 10, 1, -3 do s = s .. i .. " " end return s end)()"#, "10 7 4 1 "),
    (r##"(function(...) return select("#", ...) .. "" end)(nil, nil)"##, "2"),
    (r#"(function(...) return select(2, ...) end)("a", "b", "c")"#, "b"),
    (r#"unpack({"a", "b"}) .. """#, "a"),
    (r#"tostring(pcall(error, "x"))"#, "false"),
    (r#"select(2, pcall(error, "x", 0))"#, "x"),
    (r#"select(2, pcall(error, {code = 3})).code .. """#, "3"),
    (r#"tostring(tonumber("0x10"))"#, "16"),
    (r#"tostring(tonumber("10", 2))"#, "2"),
    (r#"tostring(tonumber("abc"))"#, "nil"),
    (r#"tostring(tonumber(" 12 "))"#, "12"),
    (r#"tostring("10" + 5)"#, "15"),
    (r#"tostring("3" * "4")"#, "12"),
    ("tostring(7 % 3) .. tostring(-7 % 3)", "12"),
    ("tostring(2 ^ 10)", "1024"),
    (r#"tostring(1 < 2) .. tostring("a" < "b")"#, "truetrue"),
    (r#"type(nil) .. type(1) .. type("") .. type({}) .. type(print)"#, "nilnumberstringtablefunction"),
    (r#"tostring(rawequal("a", "a"))"#, "true"),
    (r#"string.format("%d of %d", 3, 10)"#, "3 of 10"),
    (r#"string.format("%d", 3.7)"#, "3"),
    (r#"string.format("%s %s", 1, 1.5)"#, "1 1.5"),
    (r#"string.format("%5.1f|%-5s|%05d", 2.25, "ab", 42)"#, "  2.2|ab   |00042"),
    (r#"string.format("%s %s %s", nil, true, "x")"#, "nil true x"),
    (r#"string.format("%x %X %o %c", 255, 255, 8, 65)"#, "ff FF 10 A"),
    (r#"string.format("%g %g %e", 0.1, 1e20, 12345.678)"#, "0.1 1e+20 1.234568e+04"),
    (r#"string.format("%q", "a\"b")"#, r#""a\"b""#),
    (r#"string.format("%%")"#, "%"),
    (r#"string.format("%s", "a", "b")"#, "a"),
    (r#"string.format("%s %s", "a")"#, "a %!s(MISSING)"),
    (r#"string.format("%.2f%%", 12.345)"#, "12.35%"),
    (r#"string.format("%+d % d", 5, 5)"#, "+5  5"),
    (r#"string.format("%i", 7)"#, "7"),
    (r#"string.format("%.3s", "abcdef")"#, "abc"),
    (r#"string.format("%10.3f|", 3.14159)"#, "     3.142|"),
    (r#"("hello"):upper() .. ("WORLD"):lower()"#, "HELLOworld"),
    (r#"("hello"):len() .. """#, "5"),
    (r#"("hello"):sub(2, -2)"#, "ell"),
    (r#"("hello"):sub(-3)"#, "llo"),
    (r#"("hello"):reverse()"#, "olleh"),
    (r#"("ab"):rep(3)"#, "ababab"),
    (r#"("abc"):byte(2) .. """#, "98"),
    ("string.char(72, 105)", "Hi"),
    (r#"tostring(("hello"):find("l"))"#, "3"),
    (r#"table.concat({("hello"):find("l+")}, ",")"#, "3,4"),
    (r#"table.concat({("hello"):find("(l)(l)")}, ",")"#, "3,4,l,l"),
    (r#"table.concat({("hello"):find("")}, ",")"#, "1,0"),
    (r#"table.concat({("a.b"):find(".", 1, true)}, ",")"#, "2,2"),
    (r#"table.concat({("a.b"):find(".", 2, true)}, ",")"#, "2,2"),
    (r#"tostring(("hello"):find("x"))"#, "nil"),
    (r#"("key = value"):match("^(%w+)%s*=%s*(%w+)$")"#, "key"),
    (r#"("2026-11-15T12:00:00Z"):match("(%d+)-(%d+)-(%d+)")"#, "2026"),
    (r#"("abc123"):match("%a+")"#, "abc"),
    (r#"("[x]"):match("%[(.-)%]")"#, "x"),
    (r#"("f(a(b)c)d"):match("%b()")"#, "(a(b)c)"),
    (r#"("hello hello"):match("(h%a+) %1")"#, "hello"),
    (r#"("x"):match("()")"#, "1"),
    (r#"("THE (quick) fox"):find("%((%a+)%)") .. """#, "5"),
    (r#"(("hello world"):gsub("o", "0"))"#, "hell0 w0rld"),
    (r#"select(2, ("hello world"):gsub("o", "0")) .. """#, "2"),
    (r#"(("hello world"):gsub("(%w+)", "<%1>"))"#, "<hello> <world>"),
    (r#"(("hello world"):gsub("%w+", "%0 %0", 1))"#, "hello hello world"),
    (r#"(("hello"):gsub("", "-"))"#, "-h-e-l-l-o-"),
    (r#"(("abc"):gsub("%w", {a = "1", b = true}))"#, "1c"),
    (r#"(("abc"):gsub("%w", function(c) if c == "b" then return "X" end end))"#, "aXc"),
    (r#"(("a,b,c"):gsub(",", "%%"))"#, "a%b%c"),
    (r#"(("abc"):gsub("b*", "x"))"#, "xaxxcx"),
    (r#"(function() local s = "" for w in ("one two three"):gmatch("%a+") do s = s .. w .. ";" end return s end)()"#, "one;two;three;"),
    (r#"(function() local s = "" for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do s = s .. k .. v end return s end)()"#, "a1b2"),
    (r#"(("  trim  "):gsub("^%s*(.-)%s*$", "%1"))"#, "trim"),
    (r#"("a-b"):match("[a-c]-[%w-]")"#, "a"),
    (r#"("]"):match("[]]")"#, "]"),
    (r#"("^x"):match("[%^x]+")"#, "^x"),
    (r#"("aXb"):match("[^%l]")"#, "X"),
    ("tostring(math.floor(3.7)) .. tostring(math.max(1, 5, 3)) .. tostring(math.huge)", "351.7976931348623157e+308"),
    ("tostring(os.time({year = 2026, month = 11, day = 15, hour = 12}))", "1794744000"),
    ("tostring(os.time({year = 2026, month = 14, day = 35, hour = 1, min = 70}))", "1804385400"),
    (r#"os.date("!%Y-%m-%d %H:%M:%S", 0)"#, "1970-01-01 00:00:00"),
    ("tostring(next({}))", "nil"),
    ("_VERSION", "Lua 5.1"),
    ("tostring(getmetatable({}))", "nil"),
    (r#"setmetatable({}, {__index = function(_, k) return k .. "!" end}).x"#, "x!"),
    (r#"tostring(setmetatable({}, {__tostring = function() return "T" end}))"#, "T"),
    (r#"setmetatable({}, {__call = function(_, a) return a end})("called")"#, "called"),
    (r#""\65\066\n\"\\" .. 'x'"#, "AB\n\"\\x"),
    ("[[long\nstring]] .. [==[ ]] ]==]", "long\nstring ]] "),
    (r#"0x1F .. """#, "31"),
    (r#"1e2 .. """#, "100"),
    (r#".5 .. """#, "0.5"),
];

fn script(text: &str, open_libs: bool) -> Script {
    Script { name: "dialect.lua".into(), text: text.into(), open_libs }
}

#[test]
fn expressions_have_the_same_values() {
    let mut evaluator = Evaluator::new(Limits::default());
    for (expression, expected) in EXPRESSIONS {
        let text = format!(
            "local r = (function() return {expression}\nend)() \
             return {{status = 'Healthy', message = tostring(r)}}"
        );
        match evaluator.evaluate(&script(&text, true), &json!({})) {
            Ok(verdict) => assert_eq!(verdict.message, *expected, "{expression}"),
            Err(error) => panic!("{expression}: {error}"),
        }
    }
}

/// What the script returns, and the status and message that Argo CD makes of it.
#[test]
fn return_values_are_read_as_argo_cd_reads_them() {
    let cases = [
        ("return {status = 'Healthy', message = 'm'}", "Healthy", "m"),
        ("return {status = 'Healthy'}", "Healthy", ""),
        ("return {Status = 'Degraded', MESSAGE = 'm'}", "Degraded", "m"),
        ("return {Status = 'Degraded', status = 'Healthy'}", "Healthy", ""),
        ("return {status = 'Fine'}", "Unknown", "Lua returned an invalid health status"),
        ("return {message = 'm'}", "Unknown", "Lua returned an invalid health status"),
        ("return {status = 'Healthy', more = {1, {a = 'b'}}}", "Healthy", ""),
        ("return {status = 'Healthy', message = 5}", "", ""),
        ("return {status = {}}", "", ""),
        ("return {}", "", ""),
        ("return {'Healthy'}", "", ""),
        ("return nil", "", ""),
        ("return", "", ""),
        ("", "", ""),
        ("hs = {status = 'Healthy'}", "", ""),
        ("return 1, {status = 'Healthy'}", "Healthy", ""),
        ("return {status = 'Healthy'}, nil", "", ""),
    ];
    let mut evaluator = Evaluator::new(Limits::default());
    for (text, status, message) in cases {
        match evaluator.evaluate(&script(text, false), &json!({})) {
            Ok(verdict) => {
                assert_eq!((verdict.word(), &*verdict.message), (status, message), "{text}");
            }
            Err(error) => panic!("{text}: {error}"),
        }
    }
    let errors = [
        ("return 'Healthy'", "expect table output from Lua script, not string"),
        ("return 1", "not number"),
        ("return print", "not function"),
        ("return {status = 'Healthy', f = print}", "cannot encode function to JSON"),
        ("return {status = 'Healthy', 1}", "mixed or invalid key types"),
        ("return {[true] = 1}", "mixed or invalid key types"),
        ("return {[2] = 1}", "sparse array"),
        ("local t = {} t.t = t return t", "recursively nested"),
        ("return obj.status.phase", "index"),
        ("error('no')", "dialect.lua:1: no"),
        ("return {", "dialect.lua:1: invalid Lua"),
    ];
    for (text, says) in errors {
        let error = evaluator.evaluate(&script(text, false), &json!({})).expect_err(text);
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert!(error.to_string().starts_with("dialect.lua"), "{text}: {error}");
    }
}

#[test]
fn without_open_libs_the_libraries_are_absent() {
    let mut evaluator = Evaluator::new(Limits::default()).with_clock(1_763_208_000);
    let absent = ["string.len('x')", "math.floor(1)", "os.time()", "('x'):len()"];
    for expression in absent {
        let text = format!("return {{status = 'Healthy', message = tostring({expression})}}");
        evaluator.evaluate(&script(&text, false), &json!({})).expect_err(expression);
        evaluator.evaluate(&script(&text, true), &json!({})).expect(expression);
    }
    // Argo CD's safe functions end up in `table`, and `require` finds them too.
    for expression in ["table.time()", "require('os').time()"] {
        let text = format!("return {{status = 'Healthy', message = tostring({expression})}}");
        let verdict = evaluator.evaluate(&script(&text, false), &json!({})).expect(expression);
        assert_eq!(verdict.message, "1763208000");
    }
}

#[test]
fn no_evaluation_sees_what_another_left() {
    let mut evaluator = Evaluator::new(Limits::default());
    let leaves = "x = (x or 0) + 1 table.x = x string.x = x _G.y = x \
        return {status = 'Healthy', message = x .. ',' .. table.x .. ',' .. string.x .. ',' .. y}";
    for _ in 0..3 {
        let verdict = evaluator.evaluate(&script(leaves, true), &json!({})).expect("harmless");
        assert_eq!(verdict.message, "1,1,1,1");
    }
}

#[test]
fn objects_arrive_as_argo_cd_hands_them_over() {
    let object = json!({"n": 1, "f": 1.5, "big": 9_007_199_254_740_993_i64, "b": true, "s": "x",
        "none": null, "list": [1, null, 3], "map": {"a": null}});
    let text = "return {status = 'Progressing', message = obj.n .. ' ' .. obj.f .. ' ' .. obj.big \
        .. ' ' .. tostring(obj.b) .. ' ' .. obj.s .. ' ' .. tostring(obj.none) .. ' ' .. #obj.list \
        .. ' ' .. obj.list[2] .. ' ' .. tostring(next(obj.map)) .. ' ' .. type(actionParams)}";
    let mut evaluator = Evaluator::new(Limits::default());
    let verdict = evaluator.evaluate(&script(text, false), &object).expect("harmless");
    assert_eq!(verdict.status, Some(Health::Progressing));
    assert_eq!(verdict.message, "1 1.5 9007199254740992 true x nil 2 3 nil table");
}
