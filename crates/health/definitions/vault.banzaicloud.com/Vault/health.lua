-- Healthy: Vault is initialised, unsealed and active, all its nodes are there, and the operator has
-- nothing to complain about.
--
-- The operator names as leader the pod that answers as the active node, which only an initialised
-- and unsealed Vault does. It does not set observedGeneration.
local status = obj.status or {}
local nodes = status.nodes or {}
local wanted = obj.spec and obj.spec.size or 1

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Healthy" and condition.status == "False" then
    local why = condition.error or condition.message or ""
    if why == "" then why = "the operator calls it unhealthy" end
    return { status = "Degraded", message = why }
  end
end

if #nodes == 0 then
  return { status = "Progressing", message = "no node runs yet" }
end
if (status.leader or "") == "" then
  return { status = "Progressing", message = "no node is active: not initialised, or sealed" }
end
if #nodes < wanted then
  return { status = "Progressing", message = #nodes .. " of " .. wanted .. " nodes" }
end
return { status = "Healthy", message = status.leader .. " is active" }
