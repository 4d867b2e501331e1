"""Questions on the desk: shown as they were asked, answered once with a name, and the run goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pipeline.app.gates import gates
from pipeline.app.processes import start
from pipeline.app.stores import open_store
from pipeline.store.base import Store
from pipeline.store.reader import load
from pipeline.ui.desk import Desk
from pipeline.ui.questions import _changes
from tests.acceptance.dots import GATE
from tests.desks import Served
from tests.runs import Script


@pytest.fixture
def store(root: Path) -> Store:
    return open_store(f"files:{root}")


@pytest.fixture
def run(root: Path, tmp_path: Path, store: Store) -> str:
    """A run that asks whether to publish."""
    (tmp_path / "gate.dot").write_text(GATE)
    run = start(["run", str(tmp_path / "gate.dot"), "--model=offline", "--yes"], f"files:{root}").run
    await_status(store, run, "waiting_for_human")
    return run


def await_status(store: Store, run: str, wanted: str) -> None:
    for _ in range(2400):
        state = load(store, run)
        if wanted in (state.status, state.detail) and not next(iter(store.heads())).owned:
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"{run} is {state.status}, {state.detail}")


def test_answer_is_recorded_with_the_name_and_the_run_goes_on(desk: Served, run: str, store: Store) -> None:
    (asked,) = desk.data("questions")["questions"]
    assert (asked["run"], asked["gate"], asked["question"]) == (run, "review", "Publish it?")
    page = desk.get("questions").text
    assert "[A] Approve" in page
    assert 'name="by" required' in page
    answer = {"question": asked["hash"], "choice": "[A] Approve", "note": "fine"}
    nameless = desk.post(f"runs/{run}/gates/review/answer", answer)
    assert nameless.status == 400
    assert "a name" in nameless.text
    assert 'value="fine"' in nameless.text, "what was typed stays"
    went = desk.post(f"runs/{run}/gates/review/answer", answer | {"by": "M. Reid"})
    assert (went.status, went.headers["location"].endswith(f"runs/{run}")) == (303, True)
    await_status(store, run, "completed")
    (first,) = load(store, run).decisions.values()
    assert (first.choice, first.by, first.note) == ("[A] Approve", "M. Reid", "fine")
    got = desk.data("questions")
    assert (got["questions"], got["by"]) == ([], "M. Reid")


def test_second_person_sees_what_the_first_answered(desk: Served, run: str, store: Store) -> None:
    (gate,) = gates(store)
    there, form = f"runs/{run}/gates/review/answer", {"question": gate.question}
    for _ in range(2):
        # A second click of the first person is no second answer.
        assert desk.post(there, form | {"choice": "R", "by": "M. Reid", "note": "too long"}).status == 303
    # Whether its process works on it by now or not.
    second = desk.post(there, form | {"choice": "A", "by": "J. Low"})
    assert second.status == 409
    for text in ("M. Reid answered first", "[R] Revise", "too long", "J. Low"):
        assert text in second.text
    await_status(store, run, "waiting_for_human")
    assert [answer.by for answer in load(store, run).decisions.values()] == ["M. Reid"]


def test_unknown_choice_and_run_are_refused(desk: Served, run: str) -> None:
    wrong = desk.post(f"runs/{run}/gates/review/answer", {"choice": "maybe", "by": "M. Reid"})
    assert wrong.status == 400
    assert "[A] Approve, [R] Revise" in wrong.text
    assert desk.post("runs/20260101_000000/gates/review/answer", {"choice": "A", "by": "M. Reid"}).status == 404
    assert desk.get("questions?run=20260101_000000").status == 404


def test_questions_of_one_run_count_no_others(desk: Served, run: str) -> None:
    assert desk.data(f"questions?run={run}")["live"]["query"]["run"] == run
    assert f"questions?run={run}" in desk.get(f"runs/{run}").text


def test_name_can_be_changed(desk: Served) -> None:
    assert "M. Reid" not in desk.get("questions").text
    assert desk.post("name", {"by": "M. Reid"}).status == 303
    assert desk.data("questions")["by"] == "M. Reid"


def test_run_that_waits_for_reviews_is_no_question(root: Path) -> None:
    script = Script(root)
    script.begin("seed").complete("seed", {})
    script.end("in_progress", "waiting_for_human")
    desk = Desk(f"files:{root}")
    desk.runs.newest()
    for _ in range(1200):
        found = list(_changes(desk, {}))
        if found:
            break
        threading.Event().wait(0.05)
    assert [(name, data) for name, _, data in found] == [("new-questions", {"new": 0, "answered": 0})]
