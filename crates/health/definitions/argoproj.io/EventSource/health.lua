-- Healthy: the controller has seen the newest spec, its sources are valid and the Deployment that listens for them exists.
-- The pods of that Deployment are judged on their own.
local needed = { "SourcesProvided", "Deployed" }
local status = obj.status or {}

local generation = obj.metadata and obj.metadata.generation
if status.observedGeneration and generation and status.observedGeneration < generation then
  return { status = "Progressing", message = "the controller has not seen the newest spec yet" }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

for _, name in ipairs(needed) do
  local condition = conditions[name]
  if condition and condition.status == "False" then
    local message = condition.message or ""
    if message == "" then message = condition.reason or "no reason given" end
    return { status = "Degraded", message = name .. ": " .. message }
  end
end
for _, name in ipairs(needed) do
  local condition = conditions[name]
  if not condition or condition.status ~= "True" then
    return { status = "Progressing", message = "waits for " .. name }
  end
end
return { status = "Healthy", message = "deployed" }
