"""What a lesson is, and whether it is right: its schema, what is printed in it, and the table of checks."""
