if obj.status.ready then return {status = "Healthy"} end
return {status = "Progressing", message = "not ready"}
