"""Layered DAGs (seeds/003): tasks with dependencies on the one loop, their state, and checkpoints a layer at a time."""
