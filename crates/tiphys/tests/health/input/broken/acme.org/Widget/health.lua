return {status = "Healthy", message = "size " .. tostring(obj.status and obj.status.size)}
