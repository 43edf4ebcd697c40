module tiphys.dev/lab/pause

go 1.24.0
