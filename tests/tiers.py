"""Three tiers of tests: `short` before each commit, `all` on the build server, `judges` before a release."""

from __future__ import annotations

import os

TIERS = ("short", "all", "judges")
#: Where conftest.py keeps the tier, for the modules of tests and the processes that they start.
VARIABLE = "TEST_TIER"

#: Fixtures that start a server or a cluster: a test that uses one is not short.
SERVERS = frozenset(
    {"fleet", "forks", "guest", "moto", "objects", "pglite", "pglite_server", "postgres", "postgresql", "proxy",
     "rclone", "weed"}
)  # fmt: skip
#: Parameters that stand for such a server.
SERVER_PARAMETERS = frozenset({"objects", "pglite", "postgresql", "weed", "rclone"})
#: Files that are not short: they run an interpreter, a browser or a peer many times over, or compute for long.
LONG = frozenset[str]()


def tier() -> str:
    """Return the tier that is being run; `all` unless pytest was told otherwise."""
    return os.environ.get(VARIABLE, "all")


def trials(short: int, all: int, judges: int) -> int:
    """Return how often a test that draws its moments at random repeats in this tier."""
    return {"short": short, "all": all, "judges": judges}[tier()]
