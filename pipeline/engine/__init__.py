"""What is happening: the only control flow."""
