"""Other systems' documents and graphs, read into runs and records of ours and written back."""
