"""DOT pipelines as text, values and rules: what a file says and whether it can be run. Pure."""
