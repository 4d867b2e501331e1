"""The page of a run: what it says of real runs, what its buttons help with, and its figures."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.app import processes
from pipeline.app.run_trail import Items, Order, page
from pipeline.clock import SystemClock, iso
from pipeline.records.charge import Charge
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    ChargeSettled,
    Decision,
    RunEnded,
    RunResumed,
    RunStarted,
    TaskFailed,
    TaskStarted,
)
from pipeline.records.lines import encode_line
from pipeline.records.values import canonical, digest, encode_value
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.ui.item_map import map_of
from pipeline.ui.run import PARTS
from pipeline.ui.shape import shape_of_run
from tests.desks import Served
from tests.runs import BEGIN, Script
from tests.sample_runs import LESSON, SCHEME, completed_run, corrupt_run, dead_run, failed_run, original_run

DIME = Charge("exact", Decimal("0.10"), Decimal("0.10"), tokens={"input": 1000, "output": 5000})


def course(root: Path, lessons: int = 18, made: int = 11, **how: Any) -> Script:
    """A course whose first lessons are made, each in a minute for ten cents."""
    script = Script(root, at=BEGIN + timedelta(days=5), subject="mathematics", level="national_5",
                    execution=how)  # fmt: skip
    script.begin("seed").complete("seed", {"course_id": "c", "outcomes_created": 40})
    entries = [{**SCHEME["entries"][0], "order": n, "label": f"Lesson {n} <b>"} for n in range(1, lessons + 1)]  # type: ignore[index]
    script.begin("sow").call("sow", None, LESSON)
    script.complete(
        "sow", {"sow_document_id": "a" * 64, "lesson_count": lessons}, scheme={**SCHEME, "entries": entries}
    )
    script.begin("lessons")
    for number in range(1, made + 1):
        seq = send(script, number)
        script.add(CallEnded(seq, encode_value({"text": "x", "stop_reason": "end_turn"}), DIME.to_json(),
                             stop_reason="end_turn"), after=50)  # fmt: skip
        script.task("lessons", f"lessons/{number}", {"title": f"Lesson {number}"})
    return script


def send(script: Script, number: int, worst: str = "0.47") -> int:
    """Begin the call of a lesson; its seq."""
    blob = script.blob({"n": number})
    fact = CallStarted("lessons#1", f"{number:064x}", "claude-sonnet-5-5", blob, task=f"lessons/{number}",
                       label="lesson", worst=worst)  # fmt: skip
    return script.add(fact, after=10)


def test_a_run_whose_process_died_is_never_called_running(root: Path, desk: Served) -> None:
    script = course(root)
    for number in (12, 13):
        send(script, number)
    run = script.leave()
    data = desk.data(f"runs/{run}")
    assert data["status"]["word"] == "process is gone"
    assert data["status"]["heading"] == "Process is gone 11/18: Mathematics, National 5"
    assert dict(data["items"]["counts"]) == {"completed": 11, "cut off": 2, "pending": 5}
    assert [node["word"] for node in data["chain"]["nodes"]] == ["completed", "completed", "cut off", "pending"]
    assert data["what"]["button"] == "resume"
    assert f"lessons --resume {run}" in data["what"]["command"]
    assert "2 calls have no recorded answer; they may have cost up to $0.94" in data["what"]["cost"]
    figures = {row["key"]: row["usd"] for row in data["money"]["figures"]}
    assert figures == {"spent": 1.15, "possibly": 0.94}
    text = desk.get(f"runs/{run}").text
    assert "running" not in text.partition("<main")[2]
    assert "Lesson 3 &lt;b&gt;" in text


def test_costs_follow_the_run_by_item_too(root: Path, desk: Served) -> None:
    script = course(root, made=1)
    assert set(PARTS) == {"status", "what", "chain", "money", "items", "log", "costs"}
    data = desk.data(f"runs/{script.id}?costs=item&path=x&seq=9")
    assert data["live"]["query"] == {"costs": "item"}
    assert [(row["key"], row["calls"], row["cost_usd"]) for row in data["costs"]["lines"]] == [
        ("sow", 1, 0.05), ("lessons/1", 1, 0.1),
    ]  # fmt: skip
    assert data["costs"]["total"]["cost_usd"] == 0.15
    script.leave()


def test_an_item_with_a_call_of_unknown_cost_is_not_for_nothing(
    root: Path, desk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.app.run_index.FRESH_SECONDS", -1.0)
    script = course(root, made=1)
    first, second = send(script, 2), send(script, 3)
    script.call("lessons", "lessons/4", Charge("unpriced"))
    run = script.id

    def lines() -> dict[str, Any]:
        found = desk.data(f"runs/{run}?costs=item")["costs"]["lines"]
        return {
            row["key"]: (row["cost_usd"], row["open_high_usd"], row["unpriced_calls"], row["calls"]) for row in found
        }

    assert lines()["lessons/2"] == (0, 0.47, 0, 1)
    assert lines()["lessons/4"] == (0, 0, 1, 1)
    table = desk.get(f"runs/{run}?costs=item").text.partition('<section id="costs"')[2]
    assert "$0.00" not in table
    assert "1 unpriced" in table
    script.add(ChargeSettled(first, "0.30", "M. Reid"))
    script.add(ChargeSettled(first, "0.20", "M. Reid"))
    assert lines()["lessons/2"] == (0.3, 0, 0, 1)
    script.add(ChargeSettled(first, "0.20", "M. Reid", corrects=True))
    script.add(CallEnded(first, encode_value({"text": "x"}), DIME.to_json(), stop_reason="end_turn"))
    script.add(CallEnded(second, None, Charge("interval", Decimal("0.01"), Decimal("0.02")).to_json(), usable=False))
    assert lines()["lessons/2"] == (0.2, 0, 0, 1)
    assert lines()["lessons/3"] == (0, 0.02, 0, 1)
    total = desk.data(f"runs/{run}")["costs"]["total"]
    assert sum(cost for cost, *_ in lines().values()) == pytest.approx(total["cost_usd"])
    script.leave()


def test_items_are_shown_by_state(root: Path, desk: Served) -> None:
    run = course(root).leave()
    rows = desk.data(f"runs/{run}?state=pending")["items"]["rows"]
    assert [row["name"] for row in rows] == [f"lessons/{number}" for number in range(12, 19)]
    assert [row["begun"] for row in rows] == [False] * 7
    made = desk.data(f"runs/{run}?state=completed&from=3")["items"]["rows"]
    assert (made[0]["number"], made[0]["calls"], made[0]["usd"], made[0]["seconds"]) == (3, 1, 0.1, 51.0)


def test_the_run_that_stopped_at_its_ceiling_offers_a_higher_one(root: Path, desk: Served) -> None:
    script = course(root)
    error = {"type": "BudgetExceeded", "message": "The ceiling of $1.00 is reached.", "hint": "Raise it."}
    script.add(RunEnded("in_progress", "paused_budget", error, f"./pipeline.sh lessons --resume {script.id} "
                        "--max-cost-usd 2.00"))  # fmt: skip
    run = script.leave()
    data = desk.data(f"runs/{run}")
    assert data["status"]["word"] == "stopped at the ceiling"
    assert (data["what"]["button"], data["what"]["room"]) == ("raise", "2.00")
    assert data["what"]["text"].startswith("The ceiling of $1.00 is reached.")
    field = desk.get(f"runs/{run}").text.partition('name="usd"')[2]
    assert 'value="2.00"' in field[:40]
    refused = desk.post(f"runs/{run}/resume", {"usd": "much"})
    assert refused.status == 400
    assert 'value="much"' in refused.text


@pytest.mark.parametrize("make", [failed_run, completed_run, dead_run, original_run])
def test_every_kind_of_run_has_a_page(root: Path, desk: Served, make: object) -> None:
    run = make(root)  # type: ignore[operator]
    got = desk.get(f"runs/{run}")
    assert got.status == 200, got.text
    assert len(got.body) < 40_000
    by = ("step", "item", "model", "call_kind", "token_kind")
    assert all(desk.data(f"runs/{run}?costs={each}")["costs"]["by"] == each for each in by)


def test_a_sample_is_told_as_part_of_the_whole_course(root: Path, desk: Served) -> None:
    script = course(root, made=2, sample=2)
    script.add(RunEnded("in_progress", "stopped_as_asked", {"type": "X", "message": "The first 2 lessons are made."}))
    run = script.leave()
    data = desk.data(f"runs/{run}")
    assert data["status"]["heading"].startswith("Stopped as asked 2/18")
    assert data["chain"]["nodes"][2]["word"] == "begun"
    assert dict(data["items"]["counts"]) == {"completed": 2, "pending": 16}


def test_lessons_that_the_bank_has_nothing_for_are_not_counted_as_made(root: Path, desk: Served) -> None:
    script = course(root, lessons=70, made=68)
    for number in (69, 70):
        script.task("lessons", f"lessons/{number}", {"order": number, "lesson": None, "not_written": ["num.surds"]})
    script.complete("lessons", {"total_lessons": 70, "completed": 68, "failed": 0, "skipped": 2}).add(
        RunEnded("completed")
    )
    run = script.leave()
    data, page = desk.data(f"runs/{run}"), desk.get(f"runs/{run}").text
    assert data["status"]["heading"] == "Completed 68/70: Mathematics, National 5"
    assert "68 of 70 lessons · 2 not written" in page
    assert dict(data["items"]["counts"]) == {"completed": 68, "not written": 2}
    assert 'class="c-not-written"' in page
    assert [row["word"] for row in data["items"]["rows"]][-3:] == ["completed", "not written", "not written"]
    assert "No topic of the question bank" in desk.get(f"runs/{run}/items/lessons/70").text


def test_an_imported_run_is_told_alike_everywhere(root: Path, desk: Served) -> None:
    run = original_run(root)
    (row,) = desk.data("")["rows"]
    data = desk.data(f"runs/{run}")
    assert data["status"]["word"] == row["word"] == "process is gone"
    spent = data["money"]["figures"][0]
    assert (spent["usd"], spent["note"], row["cost_usd"]) == (1.85, "$1.85 imported", 1.85)
    assert desk.data(f"runs/{run}/time")["cost_usd"] == 1.85


def test_list_run_and_time_tell_the_same_of_a_charge_that_is_an_interval(root: Path, desk: Served) -> None:
    interval = Charge("interval", Decimal("0.03"), Decimal("0.08"))
    script = Script(root).begin("seed").call("seed", None, DIME).call("seed", None, interval, error="cut off")
    run = script.fail("seed", "cut off").end("failed", message="cut off")
    (row,) = desk.data("")["rows"]
    figures = {each["key"]: each["usd"] for each in desk.data(f"runs/{run}")["money"]["figures"]}
    then = desk.data(f"runs/{run}/time")
    assert (row["cost_usd"], row["possibly_usd"]) == (0.1, 0.08)
    assert figures == {"spent": 0.1, "possibly": 0.08}
    assert (then["cost_usd"], then["possibly_usd"]) == (0.1, 0.08)


def test_calls_of_unknown_price_leave_no_upper_bound(root: Path, desk: Served) -> None:
    script = Script(root).begin("seed").call("seed", None, DIME).call("seed", None, Charge("unpriced"))
    run = script.complete("seed", {}).leave()
    figures = {row["key"]: row for row in desk.data(f"runs/{run}")["money"]["figures"]}
    assert figures["spent"]["note"] == "2 calls, 1 of unknown price"
    assert (figures["possibly"]["usd"], figures["possibly"]["note"]) == (None, "no upper bound known")
    assert desk.data(f"runs/{run}/time")["possibly_usd"] is None
    assert desk.data("")["rows"][0]["unbounded"]


def test_a_number_that_is_none_is_the_first(root: Path, desk: Served) -> None:
    run = course(root, made=1).leave()
    for text in ("%C2%B2", "9" * 5000, "-1", "x"):
        for path in (f"runs/{run}?from={text}", f"runs/{run}/items/lessons/1?piece={text}",
                     f"runs/{run}/calls/9?piece={text}&beside={text}"):  # fmt: skip
            assert desk.get(path).status == 200, path


def test_a_published_course_is_named(root: Path, desk: Served) -> None:
    script = Script(root, execution={"out": "/courses"})
    for step in ("seed", "sow", "lessons"):
        script.begin(step).complete(step, {})
    script.begin("publish").complete("publish", {"path": "course_c84775"})
    run = script.end("completed")
    assert desk.data(f"runs/{run}")["status"]["published"] == "/courses/course_c84775/index.html"
    assert "Published: " in desk.get(f"runs/{run}").text


def test_a_course_that_is_gone_can_be_published_again(root: Path, desk: Served, tmp_path: Path) -> None:
    script = Script(root, execution={"out": str(tmp_path / "site")})
    for step in ("seed", "sow", "lessons"):
        script.begin(step).complete(step, {})
    script.begin("publish").complete("publish", {"path": "course_c84775", "content_hash": "a" * 64})
    what = desk.data(f"runs/{script.end('completed')}")["what"]
    assert what["button"] == "publish"
    assert what["text"].endswith("course_c84775 is gone; the button publishes it again.")
    assert "--from publish" in what["command"]


def test_what_is_recorded_of_a_run_at_rest_is_no_work_of_it(root: Path, desk: Served) -> None:
    script = Script(root).begin("seed").complete("seed", {}, seconds=3)
    script.add(RunEnded("in_progress", "interrupted", None, ""))
    script.add(Decision("lessons#1", "q", "approve", "M. Reid"), after=3600)
    assert desk.data(f"runs/{script.leave()}")["status"]["active_seconds"] == 5


def test_pauses_are_cut_out_of_the_money_chart(root: Path, desk: Served) -> None:
    script = course(root)
    script.add(RunEnded("in_progress", "interrupted", None, ""))
    script.add(RunResumed({}, {"host": "h", "pid": 1}), after=7200)
    script.add(TaskFailed("lessons#1", "lessons/12", {"type": "TaskRejected", "message": "two answers differ"}))
    run = script.leave()
    data = desk.data(f"runs/{run}")
    assert data["status"]["active_seconds"] < 900
    chart = data["money"]["chart"]
    assert [pause["text"] for pause in chart["pauses"]] == ["resumed 16:41"]
    assert chart["lines"]["spent"].startswith("M0 100")
    assert chart["lines"]["spent"].endswith("H1000.0")
    assert chart["title"].startswith("After 11 active minutes: Spent $1.15")


def test_the_whole_log_is_a_file(root: Path, desk: Served) -> None:
    run = failed_run(root)
    got = desk.get(f"runs/{run}/log")
    assert got.headers["content-type"].startswith("text/plain")
    lines = got.text.splitlines()
    assert lines[0].split()[0] == "1"
    assert "run_ended" in lines[-1]
    shown = desk.data(f"runs/{run}")["log"]["rows"]
    assert [row["seq"] for row in shown] == list(range(len(lines), 0, -1))


GRAPH = """digraph loop {
  start [shape=Mdiamond]; exit [shape=Msquare]; write [label="Write <b>", prompt="p"]; check [prompt="c"]
  start -> write -> check -> exit; check -> write [label="again"]; check -> exit [label="done"]
}"""


def drawn(text: str) -> dict[str, Any]:
    """How a run that is pinned to this graph, and has not begun, is drawn."""
    store = MemoryStore(SystemClock())
    fact = RunStarted("dot", {}, {}, {}, pins={"dot": digest(canonical(text))})
    run, journal = store.create(encode_line(1, iso(BEGIN), 1, encode_fact(fact)), [canonical(text)], at=BEGIN)
    journal.close()
    return shape_of_run(store, load(store, run), [], owned=False)


def test_a_graph_is_drawn_in_layers_from_left_to_right() -> None:
    found = drawn(GRAPH)
    assert found["kind"] == "graph"
    at = {node["id"]: (node["x"], node["y"]) for node in found["nodes"]}
    assert [at[name][0] for name in ("start", "write", "check", "exit")] == [16, 160, 304, 448]
    assert [edge["back"] for edge in found["edges"]].count(True) == 1
    # Two edges of one way are one line.
    assert len(found["edges"]) == 4
    assert [edge["label"] for edge in found["edges"]].count("done") == 1


def test_a_graph_of_many_nodes_is_a_list_and_a_short_row_is_a_chain() -> None:
    row = "->".join(f"n{number}" for number in range(90))
    assert (
        drawn(f"digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; start -> {row} -> exit }}")["kind"] == "list"
    )
    assert drawn("digraph g { a [shape=Mdiamond]; b; c [shape=Msquare]; a -> b -> c }")["kind"] == "chain"


def test_a_corrupt_run_says_what_is_known(root: Path, desk: Served) -> None:
    run = corrupt_run(root)
    got = desk.get(f"runs/{run}")
    assert got.status == 400
    assert "its checkpoint.json is not a JSON object" in got.text
    damaged = failed_run(root)
    journal = root / damaged / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"run_started", b"run_#tarted", 1))
    data = desk.data(f"runs/{damaged}")
    assert data["status"]["word"] == "cannot be read"
    assert data["what"]["button"] == ""
    assert {row["key"]: row["usd"] for row in data["money"]["figures"]}["spent"] == 0.15


def test_a_step_that_acts_outside_asks_what_became_of_it(root: Path, desk: Served) -> None:
    script = Script(root)
    for step in ("seed", "sow", "lessons"):
        script.begin(step).complete(step, {})
    script.begin("publish").add(TaskStarted("publish#1", "publish/1"))
    run = script.leave()
    what = desk.data(f"runs/{run}")["what"]
    assert (what["button"], what["unknown"]) == ("", ["publish/publish/1"])
    assert what["done"].startswith(f"./pipeline.sh mark-done {run} publish/publish/1")
    assert "--retry-unknown" in what["command"]


def test_a_run_that_needs_a_permission_is_resumed_at_a_terminal(root: Path, desk: Served) -> None:
    script = Script(root, execution={"needs": "--allow-tools", "target": "tools.dot"})
    script.begin("seed").add(RunEnded("in_progress", "interrupted"))
    run = script.leave()
    what = desk.data(f"runs/{run}")["what"]
    assert (what["button"], "--allow-tools" in what["cost"], "--allow-tools" in what["command"]) == ("", True, True)
    refused = desk.post(f"runs/{run}/resume", {})
    assert (refused.status, "at a terminal" in refused.text) == (400, True)


def test_settings_and_log_hold_no_secret(root: Path, desk: Served) -> None:
    script = Script(root, subject="mathematics", level="national_5", note="api_key=sk-ant-api03-abcdefgh1234567")
    run = script.end("failed", message="refused: x-api-key: sk-ant-api03-abcdefgh1234567")
    for path in (f"runs/{run}", f"api/v1/runs/{run}", f"runs/{run}/log"):
        assert "abcdefgh1234567" not in desk.get(path).text


def test_a_hundred_thousand_items_are_told_from_the_fold(root: Path, desk: Served) -> None:
    words = ["completed"] * 100_000
    words[41_850:41_853] = ["failed"] * 3
    names = [f"parts/{number}" for number in range(1, 100_001)]
    items = Items("lessons#1", names, words)
    found = map_of(items)
    assert (found["each"], found["cells"], found["rows"]) == (50, 2000, 20)
    assert {path["word"] for path in found["paths"]} == {"failed", "completed"}
    assert len(json.dumps(found)) < 3_000
    assert page(items, "failed", 1) == ([41_850, 41_851, 41_852], 0)
    places, following = page(items, "", 41_851)
    assert (places[0], len(places), following) == (41_850, 100, 41_951)
    order = Order()
    shuffled = sorted(names, key=lambda name: name[::-1])
    assert order.names(shuffled[:500]) == sorted(shuffled[:500], key=lambda name: int(name[6:]))
    assert order.names(shuffled) == names
    worst = map_of(Items("lessons#1", names[:2000], ["completed", "failed"] * 1000))
    assert sum(len(path["d"]) for path in worst["paths"]) < 22_000


def test_the_buttons_of_a_run_resume_and_stop_it(root: Path, desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(processes, "resume", lambda store, url, run, more=(): done.append((run, list(more))))
    run = dead_run(root)
    for fields in ({}, {"retry": "1"}, {"usd": "$60"}, {"usd": "none"}, {"publish": "1"}):
        got = desk.post(f"runs/{run}/resume", fields)
        assert (got.status, got.headers["location"]) == (303, f"../../runs/{run}")
    more = [[], ["--retry-failed"], ["--max-cost-usd", "60"], ["--max-cost-usd", "none"], ["--from", "publish"]]
    assert done == [(run, each) for each in more]
    refused = desk.post(f"runs/{run}/stop")
    assert refused.status == 400
    assert "is not running" in refused.text
