"""Graph-run checkpoint documents: a view of our runs at their boundaries, and documents of others kept in our runs."""
