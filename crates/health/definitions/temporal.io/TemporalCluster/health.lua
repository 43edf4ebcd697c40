-- Healthy: the frontend and the other services are ready in the wanted version, and the operator
-- says so of the newest spec.
local status = obj.status or {}
local generation = obj.metadata and obj.metadata.generation

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function says(condition)
  local message = condition.message or ""
  if message == "" then message = condition.reason or "no reason given" end
  return message
end

local reconciled = conditions["ReconcileError"]
if reconciled and reconciled.status == "True" then
  return { status = "Degraded", message = says(reconciled) }
end

local ready = conditions["Ready"]
if ready and ready.observedGeneration and generation and ready.observedGeneration < generation then
  return { status = "Progressing", message = "the operator has not seen the newest spec yet" }
end

-- The frontend first: it is what everybody else talks to.
local waiting = {}
local frontend = false
for _, service in ipairs(status.services or {}) do
  if service.name == "frontend" then frontend = service.ready == true end
  if not service.ready then table.insert(waiting, service.name) end
end
table.sort(waiting)
if not frontend then
  return { status = "Progressing", message = "the frontend is not ready" }
end
if #waiting > 0 then
  return { status = "Progressing", message = "not ready: " .. table.concat(waiting, ", ") }
end
local wanted = obj.spec and obj.spec.version
if wanted and status.version and status.version ~= wanted then
  return { status = "Progressing", message = "runs " .. status.version .. ", wanted is " .. wanted }
end
if not ready then
  return { status = "Progressing", message = "the operator has not judged it yet" }
end
if ready.status == "True" then
  return { status = "Healthy", message = "all services are ready" }
end
return { status = "Progressing", message = says(ready) }
