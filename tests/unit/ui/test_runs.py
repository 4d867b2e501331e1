"""The list of runs: newest first, by pages, found by filters with counts; chosen runs stopped, resumed, deleted."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.app.batches import BatchRow
from pipeline.app.run_index import RunFilter, RunIndex, behind
from pipeline.app.run_list import RunRow, row_of
from pipeline.app.stores import open_account, open_store
from pipeline.clock import SystemClock
from pipeline.errors import StoreError
from pipeline.records.charge import Charge
from pipeline.store.base import Head, Store
from pipeline.ui.runs import STREAMS, name_of, row_data
from tests.desks import Served, serving
from tests.journals import AT, started
from tests.runs import BEGIN, Script
from tests.sample_runs import LESSON, completed_run, corrupt_run, dead_run, failed_run, original_run


def ids(data: dict[str, Any]) -> list[str]:
    return [row["run"] for row in data["rows"]]


def many(root: Path, number: int) -> list[str]:
    """So many runs without a step, oldest first."""
    store = open_store(f"files:{root}")
    names = []
    for each in range(number):
        run, journal = store.create(started(), [], at=AT + timedelta(minutes=each))
        journal.close()
        names.append(run)
    return names


@pytest.fixture
def seen(root: Path, desk: Served) -> Served:
    """A desk over a run of each kind, all of which were looked at."""
    for make in (failed_run, completed_run, dead_run, original_run, corrupt_run):
        make(root)
    desk.desk.runs.look_at_all()
    desk.desk.runs.look(RunFilter())
    return desk


def test_row_says_what_stands_and_what_it_may_still_cost(seen: Served) -> None:
    rows = {row["word"]: row for row in seen.data("")["rows"]}
    failed = rows["failed"]
    assert (failed["name"], failed["made_by"]) == ("Mathematics, National 5", "claude-sonnet-5-5")
    assert failed["cost_usd"] == pytest.approx(0.15)
    assert failed["possibly_usd"] == pytest.approx(0.1)
    assert failed["steps"] == [["done", 2], ["run", 0], ["fail", 1], ["rest", 1]]
    assert failed["steps_text"] == "2 of 4 steps, 1 failed"
    assert failed["seconds"] > 287
    assert rows["completed"]["steps"] == [["done", 4], ["run", 0], ["fail", 0], ["rest", 0]]


def test_run_whose_process_is_gone_never_counts_as_running(seen: Served) -> None:
    words = {row["word"] for row in seen.data("")["rows"]}
    assert "process is gone" in words
    assert "running" not in words
    # The one whose process died, and a document of the original system that nobody works on.
    assert len(ids(seen.data("?status=process+is+gone"))) == 2


def test_run_that_cannot_be_read_is_listed_and_says_why(seen: Served) -> None:
    (row,) = seen.data("?status=cannot+be+read")["rows"]
    assert row["error"]
    assert "cannot be read" in seen.get("").text


def test_living_owner_is_running(root: Path, desk: Served) -> None:
    run, journal = open_store(f"files:{root}").create(started(), [], at=AT)
    assert [row["word"] for row in desk.data("")["rows"]] == ["running"]
    journal.close()
    assert [row["word"] for row in desk.data("")["rows"]] == ["process is gone"]
    assert ids(desk.data("?status=running")) == []
    assert ids(desk.data("?status=process+is+gone")) == [run]


def test_pages_follow_each_other_without_a_gap(root: Path, desk: Served) -> None:
    names = many(root, 120)[::-1]
    for filters in ("", "&q=2026"):
        found, after = [], ""
        for _ in range(3):
            data = desk.data(f"?after={after}{filters}")
            found += ids(data)
            after = data["older"]
        assert found == names
        assert after == ""
    # A run that was deleted is a place all the same.
    open_store(f"files:{root}").delete(names[49])
    assert ids(desk.data(f"?after={names[49]}"))[0] == names[50]
    assert ids(desk.data("?after=20000101_000000")) == []


def test_filters_are_counted_among_what_the_others_leave(seen: Served) -> None:
    counts = seen.data("?subject=physics")["counts"]
    assert dict(counts["status"]) == {"process is gone": 1, "completed": 1}
    assert dict(counts["subject"]) == {"mathematics": 2, "physics": 2}
    assert dict(seen.data("?subject=physics&status=completed")["counts"]["status"]) == dict(counts["status"])
    assert dict(seen.data("?status=completed")["counts"]["subject"]) == {"physics": 1}
    days = dict(seen.data("")["counts"]["from"])
    assert days == {"2026-01-11": 1, "2026-01-10": 2, "2026-01-09": 3, "2026-01-08": 4}
    assert len(ids(seen.data("?from=2026-01-10"))) == 2
    assert seen.data("?from=2026-01-10")["matches"] == 2


def test_text_is_looked_for_word_by_word(seen: Served) -> None:
    assert len(ids(seen.data("?q=physics"))) == 2
    assert len(ids(seen.data("?q=PHYSICS+20260111"))) == 1
    assert len(ids(seen.data("?q=national+5"))) == 2
    assert ids(seen.data("?q=nothing+such")) == []
    assert "No run matches" in seen.get("?q=nothing+such").text


def test_chosen_filter_stays_when_no_run_has_it_any_more(seen: Served) -> None:
    data = seen.data("?status=running&model=gone-model")
    assert ["running", 0] in data["counts"]["status"]
    assert ["gone-model", 0] in data["counts"]["model"]


def test_empty_store_says_how_to_begin(desk: Served) -> None:
    page = desk.get("").text
    assert "No runs yet" in page
    assert "./pipeline.sh lessons" in page


def test_new_finished_and_removed_runs_are_seen_by_the_next_request(root: Path, seen: Served) -> None:
    before = ids(seen.data("?q=2026"))
    script = Script(root, at=BEGIN + timedelta(days=9))
    run = script.begin("seed").leave()
    assert ids(seen.data("?q=2026")) == [run, *before]
    open_store(f"files:{root}").delete(before[0])
    assert ids(seen.data("?q=2026")) == [run, *before[1:]]


def test_changes_of_old_runs_are_seen_when_all_are_looked_at_again(root: Path) -> None:
    names = many(root, 80)
    store = open_store(f"files:{root}")
    index = RunIndex(store, SystemClock())
    index.look(RunFilter())
    store.delete(names[0])
    journal = store.open(names[1])
    index._due = 0.0
    index.look_at_all()
    while index._sweeping:
        threading.Event().wait(0.01)
    assert len(index.look(RunFilter())[0]) == 79
    assert index.look(RunFilter(status="running"))[0] == [names[1]]
    journal.close()


def test_row_that_changes_while_all_are_looked_at_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = many(root, 80)
    store = open_store(f"files:{root}")
    index = RunIndex(store, SystemClock())
    index.look(RunFilter())
    read_all = index._read_all

    def meanwhile(known: Mapping[str, RunRow]) -> dict[str, RunRow]:
        found = read_all(known)
        journal = store.open(names[70])
        index.touch(names[70])
        journal.close()
        return found

    monkeypatch.setattr(index, "_read_all", meanwhile)
    index._due = 0.0
    index.look_at_all()
    while index._sweeping:
        threading.Event().wait(0.01)
    assert index._rows[names[70]].owned


def test_store_that_never_answered_is_an_error_and_no_count(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(root, 3)
    store = open_store(f"files:{root}")
    index = RunIndex(store, SystemClock())

    def refused(*_: object, **__: object) -> Iterator[Head]:
        raise StoreError("It does not answer.")

    monkeypatch.setattr(store, "heads", refused)
    with pytest.raises(StoreError, match="does not answer"):
        index.look(RunFilter())


def test_store_that_fails_while_all_are_looked_at_leaves_what_is_known(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(root, 3)
    store = open_store(f"files:{root}")
    index = RunIndex(store, SystemClock())
    index.look(RunFilter())

    def refused(*_: object, **__: object) -> Iterator[Head]:
        raise StoreError("It does not answer.")

    monkeypatch.setattr(store, "heads", refused)
    index._due = 0.0
    index.look_at_all()
    while index._sweeping:
        threading.Event().wait(0.01)
    assert len(index.look(RunFilter())[0]) == 3


def test_list_says_where_its_filters_end(root: Path, desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.app.run_index.MOST", 3)
    names = many(root, 5)[::-1]
    assert ids(desk.data("?q=2026")) == names[:3]
    assert "Counts and filters know the newest" in desk.get("?q=2026").text
    assert ids(desk.data("")) == names


def test_place_in_a_list_is_found_also_where_its_run_is_gone() -> None:
    names = ["20260103_000000", "20260102_000000", "20260101_000000"]
    assert behind(names, "20260102_000000") == names[2:]
    assert behind(names, "20260102_120000") == names[1:]
    assert behind(names, "") == names


def test_export_holds_the_runs_asked_for_and_no_formula(root: Path, seen: Served) -> None:
    Script(root, at=BEGIN + timedelta(days=5), subject="=1+1", level="higher").end("completed")
    got = seen.get("runs.csv?level=higher")
    assert got.headers["content-disposition"] == 'attachment; filename="runs.csv"'
    rows = list(csv.DictReader(io.StringIO(got.text)))
    assert {row["subject"] for row in rows} == {"'=1+1", "physics"}
    chosen = rows[0]["run"]
    assert [row["run"] for row in csv.DictReader(io.StringIO(seen.get(f"runs.csv?run={chosen}").text))] == [chosen]


def test_unknown_money_is_never_shown_as_nothing(root: Path, seen: Served) -> None:
    damaged = Script(root, at=BEGIN + timedelta(days=6)).begin("seed").call("seed", None, Charge("unpriced")).leave()
    (row,) = [row for row in seen.get("").page.all("tr") if row.attributes.get("id") == f"run-{damaged}"]
    assert "1 unpriced" in row.text
    assert "no upper bound" in row.text
    cells = {row["status"]: row["cost_usd"] for row in csv.DictReader(io.StringIO(seen.get("runs.csv").text))}
    assert (cells["cannot be read"], cells["failed"], cells["completed"]) == ("", "0.15", "0")


def test_delete_says_what_it_frees_and_keeps_the_cost(root: Path, seen: Served) -> None:
    (run,) = ids(seen.data("?status=failed"))
    choice = seen.data(f"?ask=delete&run={run}&run=20000101_000000")["choice"]
    assert [each["run"] for each in choice["runs"]] == [run]
    assert "frees" in choice["runs"][0]["lines"][0]
    assert "stays on the account: $0.15" in choice["runs"][0]["lines"][0]
    assert [each["run"] for each in choice["refused"]] == ["20000101_000000"]
    assert run in ids(seen.data(""))
    got = seen.post("runs/delete", [("run", run), ("subject", "mathematics")])
    assert (got.status, got.headers["location"]) == (303, "../?subject=mathematics#done")
    assert run not in ids(seen.data("")) + ids(seen.data("?q=2026"))
    assert run in open_account(f"files:{root}").kept()
    again = seen.post("runs/delete", [("run", run)])
    assert again.status == 303, "of two clicks the second finds it done"


def test_what_cannot_be_done_with_some_is_done_with_the_others(root: Path, seen: Served) -> None:
    run, journal = open_store(f"files:{root}").create(started(), [], at=AT + timedelta(days=20))
    (failed,) = ids(seen.data("?status=failed"))
    got = seen.post("runs/delete", [("run", run), ("run", failed)])
    assert got.status == 400
    assert "1 of 2 runs were deleted" in got.text
    assert f"Run {run} is still going" in got.text
    assert {run} == {run, failed} & set(ids(seen.data("")))
    journal.close()


def test_acts_that_are_not_possible_say_why(root: Path, seen: Served) -> None:
    rows = {row["word"]: row["run"] for row in seen.data("")["rows"]}
    stop = seen.data(f"?ask=stop&run={rows['completed']}")["choice"]
    assert (stop["runs"], stop["refused"][0]["why"]) == ([], "It is not running (completed).")
    resume = seen.data(f"?ask=resume&run={rows['completed']}&run={rows['failed']}")["choice"]
    assert [each["run"] for each in resume["runs"]] == [rows["failed"]]
    assert "completed" in resume["refused"][0]["why"]
    assert seen.data("?ask=other&run=x")["choice"] is None
    assert seen.post("runs/stop", [("run", rows["completed"])]).status == 400


def test_what_is_out_at_the_provider_is_cancelled_only_when_asked(
    root: Path, seen: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    run, journal = open_store(f"files:{root}").create(started(), [], at=AT)
    idle = seen.data("?status=failed")["rows"][0]["run"]
    monkeypatch.setattr("pipeline.app.processes.stop", lambda store, run: told.append(("stop", run)))
    monkeypatch.setattr("pipeline.ui.run_choice.cancel_batches", lambda store, run: told.append(("cancel", run)))
    out = BatchRow(run, "batch_1", 3, 3, None, "", "")
    monkeypatch.setattr("pipeline.ui.run_choice.batches", lambda store, run: iter([out]))
    assert "Also cancel what is out at the provider (1 batch)" in seen.get(f"?ask=stop&run={run}").text
    seen.post("runs/stop", [("run", run)])
    assert told == [("stop", run)]
    seen.post("runs/stop", [("run", run), ("run", idle), ("cancel", "1")])
    assert told[1:] == [("stop", run), ("cancel", run), ("cancel", idle)]
    journal.close()


def test_ten_processes_at_once_are_enough(seen: Served) -> None:
    got = seen.post("runs/resume", [("run", str(number)) for number in range(11)])
    assert got.status == 400
    assert "at most 10" in got.text


def test_run_lasted_until_its_last_step_whatever_is_recorded_later() -> None:
    done = {"step": "a", "status": "completed", "completed_at": "2026-01-09T14:30:42.000Z"}
    times = {"started_at": "2026-01-09T14:30:22.000Z", "updated_at": "2026-01-09T15:30:22.000Z"}
    head = {"status": "completed", "nodes": ["a"], "completed_steps": [done], **times}
    assert row_data(row_of(Head("b", head)))["seconds"] == 20
    assert row_data(row_of(Head("b", {**head, "status": "failed"})))["seconds"] == 3600
    paused = {**head, "completed_steps": [{**done, "completed_at": times["updated_at"], "duration_seconds": 7.5}]}
    assert row_data(row_of(Head("b", paused)))["seconds"] == 7.5
    beside = {**head, "completed_steps": [{**done, "duration_seconds": 15}] * 2}
    assert row_data(row_of(Head("b", beside)))["seconds"] == 20


def test_list_and_page_tell_the_same_time(root: Path, desk: Served) -> None:
    run = completed_run(root)
    assert desk.data(f"runs/{run}")["status"]["active_seconds"] == round(desk.data("")["rows"][0]["seconds"])


def test_fork_and_threads_of_others_are_told(root: Path, desk: Served) -> None:

    fork = row_of(Head("b", {"pipeline": "own", "target": "x/g.dot", "parent": {"run": "a"}, "nodes": ["n"]}))
    assert (name_of(fork), row_data(fork)["fork_of"]) == ("g.dot", "a")
    threads = row_data(row_of(Head("t", {"pipeline": "langgraph", "checkpoints": 3})))
    assert threads["steps_text"] == "3 checkpoints kept"
    assert sum(number for _, number in threads["steps"]) == 0


@pytest.mark.parametrize("scheme", ["files", "sqlite"])
def test_pages_are_the_same_on_every_kind_of_store(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path / 'store'}"
    store: Store = open_store(url)
    for number in range(60):
        store.create(started(), [], at=AT + timedelta(minutes=number))[1].close()
    with serving(url) as served:
        first = served.data("")
        assert len(ids(first)) == 50
        assert len(ids(served.data(f"?after={first['older']}"))) == 10
        assert served.data("?status=process+is+gone")["matches"] == 60


def test_live_rows_are_sent_as_they_change(root: Path, desk: Served) -> None:

    script = Script(root)
    run = script.begin("seed").call("seed", None, LESSON).leave()
    desk.data("")
    desk.desk.runs.look(RunFilter())
    (stream,) = STREAMS
    assert stream.changes is not None

    def parts() -> dict[str, Any]:
        return {name: data for name, _, data in stream.changes(desk.desk, {"rows": f"{run},gone", "newest": run})}  # type: ignore[misc]

    found = parts()
    assert found[f"run-{run}"]["word"] == "process is gone"
    assert found["run-gone"]["gone"]
    assert found["new-runs"]["number"] == 0
    completed_run(root)
    found = parts()
    assert found["new-runs"]["number"] == 1
    assert found["counts"]["counts"]["all"] == 2
