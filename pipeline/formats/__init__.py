"""Other systems' documents as records."""
