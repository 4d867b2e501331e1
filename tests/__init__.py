"""The project's tests; a package so that tests can share what stands in it."""
