"""Reads a list of learning outcomes, as teachers have one, and writes a course file from it."""
