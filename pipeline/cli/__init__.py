"""Parse, call, render."""
