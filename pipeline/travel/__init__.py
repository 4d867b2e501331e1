"""Time travel: the points of a run, what it was at one, how two differ, forks of it, and its replay."""
