"""What the nodes of a DOT pipeline do: one file a kind, and the registry that finds them by type."""
