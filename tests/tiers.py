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
#: Files that are not short: they run an interpreter, a browser or a peer many times over, or compute for long.
LONG = frozenset(
    {
        "tests/acceptance/cases/test_cases_layers_elsewhere.py",
        "tests/acceptance/test_cli_courses.py",
        "tests/acceptance/test_cli_odd_files.py",
        "tests/acceptance/test_cli_process.py",
        "tests/acceptance/test_death_at_every_write.py",
        "tests/acceptance/test_docs_examples.py",
        "tests/acceptance/test_docs_layers.py",
        "tests/acceptance/test_executors.py",
        "tests/acceptance/test_first_start_real.py",
        "tests/acceptance/test_four_ways.py",
        "tests/acceptance/test_golden_stores.py",
        "tests/acceptance/test_langgraph_graphs.py",
        "tests/acceptance/test_langgraph_kills.py",
        "tests/acceptance/test_langgraph_values.py",
        "tests/acceptance/test_lost_records.py",
        "tests/acceptance/test_many_starts.py",
        "tests/acceptance/test_memory_kills.py",
        "tests/acceptance/test_objects_course.py",
        "tests/acceptance/test_run_dot_cut_off.py",
        "tests/acceptance/test_run_dot_kills.py",
        "tests/acceptance/test_signals.py",
        "tests/acceptance/test_site_html.py",
        "tests/acceptance/test_travel_lessons.py",
        "tests/contract/test_langgraph_threads.py",
        "tests/contract/test_objects_owners.py",
        "tests/contract/test_sql_hanging.py",
        "tests/contract/test_sql_upgrade.py",
        "tests/unit/formats/test_formats_deaths.py",
        "tests/unit/lessons/test_offline.py",
        "tests/unit/publish/test_publish_every_page.py",
        "tests/unit/store/test_store_damage.py",
    }
)


def tier() -> str:
    """Return the tier that is being run; `all` unless pytest was told otherwise."""
    return os.environ.get(VARIABLE, "all")


def trials(short: int, all: int, judges: int) -> int:
    """Return how often a test that draws its moments at random repeats in this tier."""
    return {"short": short, "all": all, "judges": judges}[tier()]
