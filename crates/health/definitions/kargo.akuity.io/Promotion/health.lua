-- A Promotion runs once and never again: Succeeded is Healthy.
local status = obj.status or {}
local phase = status.phase or ""
local message = status.message or ""

if phase == "Succeeded" then
  return { status = "Healthy", message = message }
end
if phase == "Failed" or phase == "Errored" or phase == "Aborted" then
  if message == "" then message = "no reason given" end
  return { status = "Degraded", message = phase .. ": " .. message }
end
if phase == "Running" then
  local steps = obj.spec and obj.spec.steps or {}
  local current = status.currentStep
  if current and #steps > 0 then
    -- Kargo counts from 0.
    return { status = "Progressing", message = "step " .. (current + 1) .. " of " .. #steps }
  end
  return { status = "Progressing", message = "Running" }
end
return { status = "Progressing", message = phase == "" and "not begun" or phase }
