"""Where results go: the published site, its data, and the folder they stand in."""
