"""Attractor: DOT graphs as pipelines, with the handlers, routes and documents of that family."""
