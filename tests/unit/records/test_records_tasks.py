"""The table of ended tasks is a mapping like any other, however it keeps them."""

from __future__ import annotations

from copy import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.records.tasks import TaskRun, TaskTable

hashes = st.sampled_from(["", "0" * 16, "0123456789abcdef", "0123456789ABCDEF", "00 0000000000000", "z" * 16, "0" * 64])
runs = st.builds(
    TaskRun,
    hashes,
    hashes,
    st.dictionaries(st.sampled_from("xy"), st.just("h"), max_size=1),
    st.integers(1, 3) | st.just(2**40),
    st.none() | st.binary(max_size=3),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from(["completed", "completed", "failed"]),
    st.none() | st.just({"type": "X"}),
    st.sampled_from(["", "code"]),
    st.sampled_from(["", "c1"]),
)
changes = st.lists(st.tuples(st.sampled_from("abc"), st.none() | runs), max_size=12)


@given(changes, changes)
@settings(max_examples=50, deadline=None)
def test_table_of_tasks_is_like_a_dict(
    before: list[tuple[str, TaskRun | None]], after: list[tuple[str, TaskRun | None]]
) -> None:
    table, plain = TaskTable(), dict[str, TaskRun]()

    def change(all_of_it: list[tuple[str, TaskRun | None]]) -> None:
        for key, run in all_of_it:
            if run is None:
                assert table.pop(key, None) == plain.pop(key, None)
            else:
                table[key] = plain[key] = run

    change(before)
    kept, then = copy(table), dict(plain)
    change(after)
    assert (list(table.items()), list(kept.items())) == (list(plain.items()), list(then.items()))
    assert table.count_completed() == sum(run.status == "completed" for run in plain.values())
    assert (table.get("a"), table.get("zz"), "a" in table) == (plain.get("a"), None, "a" in plain)
