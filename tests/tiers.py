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
#: In the short tier laws are tried on a part of the examples only: one in so many.
FEWER_EXAMPLES = 4
#: Files and folders that are not short: they run an interpreter, a browser or a peer many times over, or compute for
#: long. Of tests/acceptance only the smoke below is short.
LONG = frozenset(
    {
        "tests/acceptance",
        "tests/judges",
        "tests/contract/test_langgraph_threads.py",
        "tests/contract/test_objects_owners.py",
        "tests/unit/lessons/test_offline.py",
        "tests/unit/lessons/test_shipped_topics.py",
        "tests/unit/publish/test_publish_every_page.py",
        "tests/unit/store/test_store_damage.py",
        "tests/unit/app/test_processes.py",
    }
)
#: Start, a course, its resume, list, status, cost, a graph, a disk that refuses, twelve kills, the desk's first page.
SMOKE = frozenset(
    f"tests/acceptance/test_{name}.py"
    for name in (
        "cli_cost", "cli_lessons", "cli_list", "cli_status", "first_start", "install", "kills", "known_faults",
        "refusing_disk", "resumed_starts", "run_dot", "shell_scripts", "sql_course", "start_imports", "ui_smoke",
    )
)  # fmt: skip


def is_short(path: str) -> bool:
    """Return whether a file of tests, named from the root of the project, may hold short tests."""
    return path in SMOKE or not any(path == long or path.startswith(f"{long}/") for long in LONG)


def tier() -> str:
    """Return the tier that is being run; `all` unless pytest was told otherwise."""
    return os.environ.get(VARIABLE, "all")


def trials(short: int, all: int, judges: int) -> int:
    """Return how often a test that draws its moments at random repeats in this tier."""
    return {"short": short, "all": all, "judges": judges}[tier()]
