"""Tasks on an executor: what is handed out, how a worker runs it, how the coordinator takes it in."""
