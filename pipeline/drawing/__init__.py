"""Figures of lessons: a closed table of kinds; code computes, checks and draws, and describes from the same data."""
