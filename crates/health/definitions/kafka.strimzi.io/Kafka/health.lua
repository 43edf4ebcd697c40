-- Healthy: Strimzi has seen the newest spec and calls the cluster Ready.
--
-- Argo CD has a check for this kind, which does not look at the generation: after a change it says
-- Healthy until the operator has noticed.
local status = obj.status or {}

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function says(condition)
  local message = condition.message or ""
  if message == "" then message = condition.reason or "no reason given" end
  return message
end

local paused = conditions["ReconciliationPaused"]
if paused and paused.status == "True" then
  return { status = "Suspended", message = "reconciliation is paused" }
end

local generation = obj.metadata and obj.metadata.generation
if generation and (status.observedGeneration or 0) < generation then
  return { status = "Progressing", message = "Strimzi has not seen the newest spec yet" }
end

local ready = conditions["Ready"]
if ready and ready.status == "True" then
  return { status = "Healthy", message = "" }
end
-- NotReady is True both while the cluster is made and when that failed; the reason tells.
local not_ready = conditions["NotReady"]
if not_ready and not_ready.status == "True" then
  if not_ready.reason == "Creating" then
    return { status = "Progressing", message = says(not_ready) }
  end
  return { status = "Degraded", message = says(not_ready) }
end
if ready and ready.status == "False" then
  return { status = "Degraded", message = says(ready) }
end
return { status = "Progressing", message = "Strimzi has not judged it yet" }
