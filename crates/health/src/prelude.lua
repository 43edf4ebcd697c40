-- What the scripts find in their globals. Runs once for each Lua state, with what Lua and Rust
-- offer; returns a function that makes fresh globals, and the operand that joins texts.
local native, rust = ...

local type, next, select, pcall, error = native.type, native.next, native.select, native.pcall, native.error
local getmetatable, setmetatable, rawget = native.getmetatable, native.setmetatable, native.rawget
local native_tostring, unpack = native.tostring, native.table.unpack
local check, number_text = rust.check, rust.number_text

-- Whole numbers below this look the same in Lua and in gopher-lua.
local PLAIN = 1e14

local function number(value)
  if value > -PLAIN and value < PLAIN and value % 1 == 0 and value ~= 0 then
    return native_tostring(value)
  end
  return number_text(value)
end

local function tostring(...)
  if select("#", ...) == 0 then error("bad argument #1 to tostring (value expected)", 2) end
  local value = ...
  if type(value) == "number" then return number(value) end
  return native_tostring(value)
end

-- `a .. join .. b` is `a .. (join .. b)`: the first step keeps b, the second has both. Nothing
-- can happen between the two, so one place to keep b is enough.
local kept
local second = setmetatable({}, { __concat = function(left, right)
  local a, b = left, kept
  kept = nil
  local ta, tb = type(a), type(b)
  if ta == "number" then a = number(a) ta = "string" end
  if tb == "number" then b = number(b) tb = "string" end
  if ta == "string" and tb == "string" then
    return a .. b
  end
  local handler = ta == "table" and rawget(getmetatable(a) or {}, "__concat")
    or tb == "table" and rawget(getmetatable(b) or {}, "__concat")
  if handler then return handler(a, b) end
  error("cannot perform concat operation between " .. type(left) .. " and " .. tb, 2)
end })
local join = setmetatable({}, { __concat = function(_, right)
  kept = right
  return second
end })

local base = {
  _VERSION = "Lua 5.1", _GOPHER_LUA_VERSION = "GopherLua 0.1",
  error = error, next = next, pairs = native.pairs, ipairs = native.ipairs,
  rawequal = native.rawequal, rawget = rawget, rawset = native.rawset, select = select,
  tonumber = native.tonumber, tostring = tostring, type = type, unpack = unpack,
  getmetatable = getmetatable, assert = native.assert,
  print = function() end,
  collectgarbage = function() return 0 end,
}

-- A script must not catch that its time is over.
function base.pcall(...)
  return check(pcall(...))
end

function base.xpcall(f, handler)
  local function finish(ok, ...)
    if ok then return ok, ... end
    return false, handler(...)
  end
  return finish(check(pcall(f)))
end

-- Finalizers run where no limit reaches. gopher-lua has none.
function base.setmetatable(value, meta)
  if type(value) == "string" or type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    error("finalizers are not available", 2)
  end
  return setmetatable(value, meta)
end

local table_library = {
  insert = native.table.insert, remove = native.table.remove,
  concat = rust.table_concat,
}

function table_library.getn(value)
  return #value
end

function table_library.maxn(value)
  local most = 0
  for key in next, value do
    if type(key) == "number" and key > most then most = key end
  end
  return most
end

-- A heap sort in Lua: it can be interrupted, and no order of the values makes it slow.
function table_library.sort(value, before)
  before = before or function(a, b) return a < b end
  local count = #value
  local function sift(root, last)
    while root * 2 <= last do
      local child = root * 2
      if child < last and before(value[child], value[child + 1]) then child = child + 1 end
      if not before(value[root], value[child]) then return end
      value[root], value[child] = value[child], value[root]
      root = child
    end
  end
  for root = (count - count % 2) / 2, 1, -1 do sift(root, count) end
  for last = count, 2, -1 do
    value[1], value[last] = value[last], value[1]
    sift(1, last - 1)
  end
end

local function copy(from)
  local to = {}
  for key, value in next, from do to[key] = value end
  return to
end

local function globals(open)
  local fresh = copy(base)
  fresh._G = fresh
  fresh.table = copy(table_library)
  local os = { time = rust.os_time, date = rust.os_date }
  function fresh.require(name)
    if name == "os" then return os end
    error("module " .. tostring(name) .. " not found", 2)
  end
  if open then
    fresh.os = os
    fresh.string = copy(rust.string)
    fresh.math = copy(native.math)
    fresh.math.huge = 1.7976931348623157e308
  else
    -- Where Argo CD's own version of it puts them.
    fresh.table.time, fresh.table.date = os.time, os.date
  end
  return fresh
end

-- Texts have methods only with open libs. Nobody may reach the table behind them.
local methods = setmetatable({}, { __index = function(_, key)
  if rust.open() then return rust.string[key] end
  error("attempt to index a non-table object(string) with key '" .. tostring(key) .. "'", 2)
end, __metatable = false })
getmetatable("").__index = methods
getmetatable("").__metatable = false

return globals, join
