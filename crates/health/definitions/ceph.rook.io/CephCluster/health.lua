-- Healthy: Rook has reached the newest spec (phase Ready, or Connected for an external cluster) and
-- Ceph itself says HEALTH_OK.
--
-- HEALTH_WARN is not Healthy: a cluster that is still forming warns, and so does one that is about
-- to lose data. Where warnings are part of daily life, the annotation
--   tiphys.dev/ceph-warnings: accepted
-- on the CephCluster makes them Healthy.
local status = obj.status or {}
local ceph = status.ceph or {}

local generation = obj.metadata and obj.metadata.generation
if status.observedGeneration and generation and status.observedGeneration < generation then
  return { status = "Progressing", message = "Rook has not seen the newest spec yet" }
end

-- The names of Ceph's findings, such as OSD_DOWN, in an order that does not change.
local function findings()
  local names = {}
  for name, detail in pairs(ceph.details or {}) do
    table.insert(names, name .. ": " .. ((detail or {}).message or "no details"))
  end
  table.sort(names)
  return table.concat(names, "; ")
end

local function because(text)
  local found = findings()
  if found == "" then return text end
  return text .. " (" .. found .. ")"
end

local phase = status.phase or ""
if phase == "Failure" then
  return { status = "Degraded", message = "Rook: " .. (status.message or "the cluster failed") }
end

local external = obj.spec and obj.spec.external and obj.spec.external.enable
if phase ~= "Ready" and not (external and phase == "Connected") then
  local message = status.message or "the cluster is being set up"
  if phase == "" then return { status = "Progressing", message = "Rook has not begun" } end
  return { status = "Progressing", message = "Rook: " .. phase .. ", " .. message }
end

if ceph.health == "HEALTH_OK" then
  return { status = "Healthy", message = "HEALTH_OK" }
end
if ceph.health == "HEALTH_WARN" then
  local annotations = obj.metadata and obj.metadata.annotations or {}
  if annotations["tiphys.dev/ceph-warnings"] == "accepted" then
    return { status = "Healthy", message = because("HEALTH_WARN, accepted") }
  end
  return { status = "Progressing", message = because("HEALTH_WARN") }
end
if ceph.health == "HEALTH_ERR" then
  return { status = "Degraded", message = because("HEALTH_ERR") }
end
return { status = "Progressing", message = "Ceph has not said how it is" }
