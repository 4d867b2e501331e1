"""What it cost: prices, charges as rows, tables and the ceiling. Pure."""
