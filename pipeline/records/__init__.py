"""Facts: what a journal says and what follows from it. No I/O, no clock, no randomness."""
