-- Healthy: no promotion is under way, and the newest spec is reconciled with the Freight it has.
-- A Stage that has had no Freight yet has nothing to be unhealthy about: it is Healthy too, since
-- what a platform deploys is the Stage, and Freight comes later.
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

if status.currentPromotion then
  return { status = "Progressing", message = "promotes: " .. (status.currentPromotion.name or "?") }
end
local promoting = conditions["Promoting"]
if promoting and promoting.status == "True" then
  return { status = "Progressing", message = "promotes: " .. says(promoting) }
end

local last = status.lastPromotion and status.lastPromotion.status or {}
if last.phase == "Failed" or last.phase == "Errored" or last.phase == "Aborted" then
  return { status = "Degraded", message = "the last promotion " .. last.phase .. ": " .. (last.message or "no reason given") }
end

local health = status.health or {}
if health.status == "Unhealthy" then
  return { status = "Degraded", message = table.concat(health.issues or {}, "; ") }
end

local verified = conditions["Verified"]
if verified and verified.status == "False" then
  return { status = "Degraded", message = "not verified: " .. says(verified) }
end

local ready = conditions["Ready"]
if not ready then
  return { status = "Progressing", message = "Kargo has not begun" }
end
if ready.status == "True" then
  return { status = "Healthy", message = "" }
end
if ready.reason == "NoFreight" then
  return { status = "Healthy", message = "waits for Freight" }
end
return { status = "Progressing", message = says(ready) }
