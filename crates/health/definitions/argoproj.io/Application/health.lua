-- The health of an Application inside of another one. What stands in its status is only believed
-- if it is news: Argo CD writes "Succeeded" before it looks at the resources again, so a finished
-- operation with the health from before it is a state that really occurs.
--
-- Not Healthy: while an operation is asked for or runs, while the comparison is not one with this
-- spec, and until the Application was reconciled after its last operation.
--
-- Never Missing or Unknown: the parent would leave such a child out of its own health.
local spec = obj.spec or {}
local status = obj.status or {}

local function progressing(message)
  return { status = "Progressing", message = message }
end

-- Argo CD leaves empty fields out of its status, so empty is the same as absent.
local function empty(value)
  if value == nil or value == "" or value == false or value == 0 then return true end
  if type(value) ~= "table" then return false end
  for _, field in pairs(value) do
    if not empty(field) then return false end
  end
  return true
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b or empty(a) and empty(b) end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key, value in pairs(b) do
    if a[key] == nil and not empty(value) then return false end
  end
  return true
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "InvalidSpecError" then
    return { status = "Degraded", message = condition.message or "the spec is invalid" }
  end
end

local operation = status.operationState or {}
if obj.operation then return progressing("an operation is asked for") end
if operation.phase == "Running" or operation.phase == "Terminating" then
  return progressing("an operation runs: " .. (operation.message or operation.phase))
end

local sync = status.sync or {}
local compared = sync.comparedTo
if not compared or not status.reconciledAt then
  return progressing("not reconciled yet")
end
-- With a hydrator the comparison is with what it wrote, and not with what the spec says.
local hydrated = not empty(spec.sourceHydrator)
if not same(compared.destination, spec.destination)
  or not same(compared.ignoreDifferences, spec.ignoreDifferences)
  or not hydrated and not (same(compared.source, spec.source) and same(compared.sources, spec.sources)) then
  return progressing("not compared with its newest spec yet")
end

-- Times are in UTC and to the second, so that they compare as texts. Within one second nobody can
-- tell which came first.
if operation.finishedAt and not (status.reconciledAt > operation.finishedAt) then
  return progressing("not reconciled since its operation finished")
end
-- Argo CD compares with a copy of the cluster that may be older than the operation. If what was
-- just applied seems to be OutOfSync, and health has not changed since, both may be news of before.
local result = operation.syncResult or {}
local changed = status.health and status.health.lastTransitionTime or ""
if operation.phase == "Succeeded" and sync.status == "OutOfSync"
  and same(result.revision, sync.revision) and same(result.revisions, sync.revisions)
  and not (changed > (operation.finishedAt or "")) then
  return progressing("OutOfSync right after its operation")
end
if (operation.phase == "Failed" or operation.phase == "Error") and sync.status ~= "Synced" then
  return { status = "Degraded", message = "its operation failed: " .. (operation.message or operation.phase) }
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "ComparisonError" then
    return progressing("it cannot be compared: " .. (condition.message or "no reason given"))
  end
end
local health = status.health or {}
local word = health.status or ""
if word == "" then return progressing("its health is not known yet") end
if word == "Missing" or word == "Unknown" then
  return progressing(health.message or ("it is " .. word))
end
return { status = word, message = health.message or "" }
