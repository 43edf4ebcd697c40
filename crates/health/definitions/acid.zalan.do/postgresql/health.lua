-- Healthy: the operator has seen the newest spec, calls the cluster Running, and runs as many
-- instances as were asked for.
--
-- The operator writes its state into status.PostgresClusterStatus; observedGeneration and
-- numberOfInstances come with version 1.14. A status that is plain text comes from versions that
-- are years old.
local status = obj.status or {}
if type(status) == "string" then status = { PostgresClusterStatus = status } end

local generation = obj.metadata and obj.metadata.generation
if status.observedGeneration and generation and status.observedGeneration < generation then
  return { status = "Progressing", message = "the operator has not seen the newest spec yet" }
end

local state = status.PostgresClusterStatus or ""
if state == "" then
  return { status = "Progressing", message = "the operator has not begun" }
end
if state == "Creating" or state == "Updating" then
  return { status = "Progressing", message = state }
end
if state == "Running" then
  local wanted = obj.spec and obj.spec.numberOfInstances
  local running = status.numberOfInstances
  if wanted and running and running < wanted then
    return { status = "Progressing", message = running .. " of " .. wanted .. " instances" }
  end
  return { status = "Healthy", message = "Running" }
end
-- CreateFailed, UpdateFailed, SyncFailed, Invalid.
return { status = "Degraded", message = state }
