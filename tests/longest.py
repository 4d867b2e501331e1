"""Which files of tests take longest, and in which the lines of the product are not counted."""

from __future__ import annotations

#: They take ten seconds and more, the longest first.
FIRST = (
    "tests/acceptance/test_kills.py",
    "tests/acceptance/test_first_start_real.py",
    "tests/acceptance/test_executors.py",
    "tests/acceptance/test_objects_course.py",
    "tests/contract/test_objects_owners.py",
    "tests/contract/test_langgraph_threads.py",
    "tests/acceptance/test_cli_courses.py",
    "tests/acceptance/test_four_ways.py",
    "tests/acceptance/test_site_html.py",
    "tests/acceptance/test_run_dot_kills.py",
    "tests/acceptance/cases/test_cases_runs.py",
    "tests/acceptance/test_death_at_every_write.py",
    "tests/acceptance/test_cli_process.py",
    "tests/acceptance/test_many_starts.py",
    "tests/acceptance/test_signals.py",
    "tests/acceptance/test_golden_stores.py",
    "tests/unit/lessons/test_shipped_topics.py",
    "tests/unit/lessons/test_offline.py",
    "tests/unit/lessons/test_calibration.py",
    "tests/unit/store/test_store_damage.py",
)

#: They read the whole source, best in one process.
SOURCE_READERS = (
    "tests/test_architecture.py",
    "tests/test_budgets.py",
    "tests/unit/docs/test_docs_errors.py",
    "tests/unit/docs/test_docs_events.py",
)

#: They go through lines that other tests go through too, some thousand times: counting makes that twice as long.
UNCOUNTED = frozenset(
    {
        "tests/acceptance/cases/test_cases_layers_elsewhere.py",
        "tests/acceptance/test_death_at_every_write.py",
        "tests/acceptance/test_four_ways.py",
        "tests/acceptance/test_golden_stores.py",
        "tests/acceptance/test_kills.py",
        "tests/acceptance/test_objects_course.py",
        "tests/acceptance/test_run_dot_kills.py",
        "tests/acceptance/test_site_html.py",
        "tests/acceptance/test_travel_lessons.py",
        "tests/contract/test_langgraph_threads.py",
        "tests/contract/test_objects_owners.py",
        "tests/test_architecture.py",
        "tests/test_budgets.py",
        "tests/unit/cli/test_cli_hostile_documents.py",
        "tests/unit/cost/test_cost_report.py",
        "tests/unit/docs/test_docs_errors.py",
        "tests/unit/docs/test_docs_events.py",
        "tests/unit/dot/test_dot_laws.py",
        "tests/unit/engine/test_engine_batches.py",
        "tests/unit/engine/test_engine_laws.py",
        "tests/unit/formats/test_formats_attractor_laws.py",
        "tests/unit/formats/test_formats_casys_runs.py",
        "tests/unit/graph/test_graph_follows.py",
        "tests/unit/graph/test_graph_readiness.py",
        "tests/unit/lessons/test_calibration.py",
        "tests/unit/lessons/test_offline.py",
        "tests/unit/lessons/test_shipped_topics.py",
        "tests/unit/llm/test_llm_bill.py",
        "tests/unit/publish/test_publish_every_page.py",
        "tests/unit/records/test_records_laws.py",
        "tests/unit/store/test_store_damage.py",
        "tests/unit/travel/test_travel_laws.py",
    }
)
