"""The versions of the tables, and what brings one to the next."""
