-- Healthy: what the newest spec subscribes to could be looked at.
local status = obj.status or {}

local generation = obj.metadata and obj.metadata.generation
if status.observedGeneration and generation and status.observedGeneration < generation then
  return { status = "Progressing", message = "Kargo has not seen the newest spec yet" }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function says(condition)
  local message = condition.message or ""
  if message == "" then message = condition.reason or "no reason given" end
  return message
end

-- Reconciling says that it looks again; what it found last still holds, and may be bad news.
local healthy = conditions["Healthy"]
if healthy and healthy.status == "False" then
  return { status = "Degraded", message = says(healthy) }
end
local ready = conditions["Ready"]
if ready and ready.status == "True" then
  return { status = "Healthy", message = "" }
end
if ready and ready.status == "False" and not conditions["Reconciling"] then
  return { status = "Degraded", message = says(ready) }
end
return { status = "Progressing", message = ready and says(ready) or "Kargo has not begun" }
