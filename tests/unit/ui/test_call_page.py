"""The pages of an item and of a call: prompt, reply in pieces and side by side, charge, and the frame of a lesson."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

from pipeline.app.calls import words_apart
from pipeline.app.preview import preview
from pipeline.app.travel import fork
from pipeline.llm.base import Message, Reply, Request, Segment
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled, TaskCompleted, TaskFailed
from pipeline.records.values import encode_value
from tests.desks import Served
from tests.publishing import course
from tests.runs import Script
from tests.small_lesson import fresh

EVIL = "<script>alert(1)</script>"
CHARGE = Charge(
    "exact", Decimal("0.0123456789"), Decimal("0.0123456789"), tokens={"cache_read": 900, "output": 500},
    parts={"cache_read": Decimal("0.0003456789"), "output": Decimal("0.012")},
    prices={"cache_read": Decimal("0.3"), "output": Decimal("15")}, source="file prices.yaml",
)  # fmt: skip


def ask(script: Script, text: str | None, *, attempt: int = 1, system: str = "Be brief.") -> int:
    """One call of lesson 1; its seq."""
    request = Request("claude-sonnet-5-5", [Message("user", EVIL)], [Segment(system, cache=True)], schema_version=2,
                      label="lesson")  # fmt: skip
    fact = CallStarted("lessons#1", f"{script._seq:064x}", "claude-sonnet-5-5", script.blob(request.to_json()),
                       task="lessons/1", attempt=attempt, label="lesson", worst="0.47")  # fmt: skip
    seq = script.add(fact)
    if text is not None:
        reply = encode_value(Reply(text, "end_turn").to_json())
        script.add(CallEnded(seq, reply, CHARGE.to_json(), stop_reason="end_turn", request_id="req_1"), after=42)
    return seq


def begun(root: Path) -> Script:
    return Script(root).begin("seed").complete("seed", {}).begin("sow").complete("sow", {}).begin("lessons")


def test_a_call_shows_its_prompt_reply_and_charge_to_the_last_digit(root: Path, desk: Served) -> None:
    script = begun(root)
    seq = ask(script, f"{EVIL} and more", system="x" * 5000)
    run = script.leave()
    data = desk.data(f"runs/{run}/calls/{seq}")
    assert (data["word"], data["seconds"], data["item"]) == ("completed", 42.0, "lessons/1")
    assert data["charge"]["usd"] == "0.0123456789"
    assert [row["usd"] for row in data["charge"]["kinds"]] == ["0.0003456789", "0.012"]
    system, user = data["prompt"]["parts"]
    assert (system["closed"], system["text"], system["cached"]) == (True, "", "read from cache")
    assert (user["closed"], user["text"]) == (False, EVIL)
    assert desk.get(f"runs/{run}/calls/{seq}/prompt/1").text == "x" * 5000
    page = desk.get(f"runs/{run}/calls/{seq}").text
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; and more" in page
    assert desk.get(f"runs/{run}/calls/{seq}/reply").headers["content-type"].startswith("text/plain")
    assert desk.get(f"runs/{run}/calls/1").status == 404
    assert desk.get(f"runs/{run}/calls/{seq}/prompt/9").status == 404


def test_a_reply_of_ten_megabytes_comes_in_pieces(root: Path, desk: Served) -> None:
    script = begun(root)
    seq = ask(script, "0123456789" * 1_000_000)
    run = script.leave()
    first = desk.get(f"runs/{run}/calls/{seq}")
    assert len(first.body) < 90_000
    data = desk.data(f"runs/{run}/calls/{seq}?piece=153")["reply"]
    assert (data["pieces"], data["piece"], len(data["text"])) == (153, 153, 10_000_000 - 152 * 65_536)
    assert len(desk.get(f"runs/{run}/calls/{seq}/reply").body) == 10_000_000


def test_two_attempts_are_compared_word_by_word(root: Path, desk: Served) -> None:
    script = begun(root)
    first = ask(script, "The slope is two.")
    script.add(TaskFailed("lessons#1", "lessons/1", {"type": "TaskRejected", "message": "Wrong.", "faults": ["2 ≠ 3"]}))
    second = ask(script, "The slope is three <b>.", attempt=2)
    run = script.leave()
    data = desk.data(f"runs/{run}/calls/{second}?beside={first}")
    assert data["beside"]["parts"][0] == ["same", "The slope is "]
    assert ["del", "two"] in data["beside"]["parts"]
    text = desk.get(f"runs/{run}/calls/{second}?beside={first}").text
    before, after = text.split("<figure>")[1:3]
    assert ("<del>two</del>" in before, "<ins>" in before) == (True, False)
    assert ("<ins>three &lt;b&gt;</ins>" in after, "<del>" in after) == (True, False)
    assert "The same text." in desk.get(f"runs/{run}/calls/{second}?beside={second}").text
    item = desk.data(f"runs/{run}/items/lessons/1")["part"]
    assert [(each["attempt"], len(each["calls"])) for each in item["attempts"]] == [(2, 1), (1, 1)]
    assert (item["fault"], item["faults"]) == ("Wrong.", ["2 ≠ 3"])


def test_words_are_told_apart() -> None:
    assert list(words_apart("a b c", "a x c d")) == [
        ["same", "a "], ["del", "b"], ["ins", "x"], ["same", " c"], ["ins", " d"],
    ]  # fmt: skip


def test_a_call_without_an_end_is_cut_off_until_it_is_settled(root: Path, desk: Served) -> None:
    script = begun(root)
    seq = ask(script, None)
    settled = ask(script, None)
    script.add(ChargeSettled(settled, "0.31", "M. Reid"))
    run = script.leave()
    data = desk.data(f"runs/{run}/calls/{seq}")
    assert (data["word"], data["charge"]["low"], data["charge"]["high"]) == ("cut off", "0", "0.47")
    found = desk.data(f"runs/{run}/calls/{settled}")["charge"]
    assert (found["usd"], found["note"]) == ("0.31", "settled by M. Reid")


def test_a_call_of_unknown_price_is_not_for_nothing(root: Path, desk: Served) -> None:
    script = begun(root)
    script.call("lessons", "lessons/1", Charge("unpriced"))
    script.call("lessons", "lessons/1", Charge("interval", Decimal("0.25"), None))
    run = script.leave()
    page = desk.get(f"runs/{run}/items/lessons/1").text
    assert '<td class="num">unknown</td>' in page
    assert '<td class="num">at least $0.25</td>' in page
    assert "$0.00" not in page


def test_an_item_is_called_on_its_page_what_the_list_calls_it(root: Path, desk: Served) -> None:
    script = begun(root)
    script.task("lessons", "lessons/1", {"n": 1}).complete("lessons", {})
    parent = script.end("failed", message="x")
    run = fork(desk.desk.store(), parent, at="lessons", assignments=[]).run_id
    assert desk.data(f"runs/{run}")["items"]["rows"][0]["word"] == "reused"
    assert desk.data(f"runs/{run}/items/lessons/1")["part"]["word"] == "reused"


def test_a_lesson_is_framed_as_pupils_see_it_and_runs_nothing(root: Path, desk: Served) -> None:
    lesson = fresh()
    lesson["title"] = f"Brackets {EVIL}"
    script = Script(root, pins={"catalogue": course()})
    entry = {"order": 1, "lesson_type": "teach", "label": "Brackets", "block": "A", "outcome_refs": [], "points": []}
    scheme = {"course_id": "c", "lesson_count": 1, "entries": [entry]}
    script.begin("seed").complete("seed", {}).begin("sow").complete("sow", {"lesson_count": 1}, scheme=scheme)
    script.begin("lessons")
    seq = ask(script, json.dumps(lesson))
    row = {"order": 1, "schema": 2, "lesson": lesson, "checks": {"warnings": ["A finding."]}, "critic": None}
    script.add(TaskCompleted("lessons#1", "lessons/1", encode_value(row), hash="h"))
    run = script.leave()
    item = desk.data(f"runs/{run}/items/lessons/1")["part"]
    assert (item["title"], item["findings"], item["order"]) == (f"Brackets {EVIL}", ["A finding."], 1)
    assert desk.data(f"runs/{run}/calls/{seq}")["reply"]["views"] == ["text", "json", "page"]
    for path in (f"runs/{run}/frame/item/1", f"runs/{run}/frame/{seq}"):
        got = desk.get(path)
        assert got.status == 200, got.text
        policy = got.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
        assert "script-src" not in policy
        assert "default-src 'none'" in policy
        assert policy.endswith("sandbox")
        assert EVIL not in got.text
    assert desk.get(f"runs/{run}/frame/item/2").status == 404
    answers = preview(desk.desk.store(), desk.desk.state(run), row, answers=True).html
    assert re.search(r'<p class="lede">\d+ questions, \d+ marks\.</p>', answers)
