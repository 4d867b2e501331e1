"""What may run: graphs, routing and readiness. Pure."""
