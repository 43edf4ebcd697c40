-- Healthy: Vault is initialised, unsealed and active, all its nodes are there, and the operator has
-- nothing to complain about.
--
-- The operator names as leader the pod that answers as the active node, which only an initialised
-- and unsealed Vault does. It does not set observedGeneration.
local status = obj.status or {}
local nodes = status.nodes or {}
local wanted = obj.spec and obj.spec.size or 1

-- A node that does not answer may still be starting: the operator reports it as an error. What it
-- says in a message, such as a missing storage, nobody but a person can change.
local unanswered = nil
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Healthy" and condition.status == "False" then
    if (condition.message or "") ~= "" then
      return { status = "Degraded", message = condition.message }
    end
    if (condition.error or "") ~= "" then unanswered = condition.error end
  end
end

if #nodes == 0 then
  return { status = "Progressing", message = "no node runs yet" }
end
if unanswered then
  return { status = "Progressing", message = "a node does not answer: " .. unanswered }
end
if (status.leader or "") == "" then
  return { status = "Progressing", message = "no node is active: not initialised, or sealed" }
end
if #nodes < wanted then
  return { status = "Progressing", message = #nodes .. " of " .. wanted .. " nodes" }
end
return { status = "Healthy", message = status.leader .. " is active" }
