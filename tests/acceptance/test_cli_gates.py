"""Questions to people through the command line: asked, listed, answered once and for exactly that question."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipeline import Pipeline, StepContext, step
from pipeline.app.gates import answer, gates
from pipeline.clock import SystemClock
from pipeline.errors import DecidedMeanwhile
from pipeline.records.run import RunState
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from pipeline.store.run_folder import RunFolder
from tests.said import Cli

CHOICES = ["[A] Approve", "[R] Reject", "Rework it"]


@step()
def draft(ctx: StepContext) -> dict[str, str]:
    return {"text": "a draft"}


@step()
def review(ctx: StepContext) -> dict[str, str]:
    answer = ctx.ask_person("Publish it?", CHOICES, {"draft": ctx.outputs["draft"]["text"]})
    return {"said": answer.choice, "note": answer.note}


GATED = Pipeline("gated", [draft, review])


@pytest.fixture
def run(root: Path) -> str:
    result = GATED.run(store=FileStore(root, SystemClock()))
    assert (result.detail, result.exit_code) == ("waiting_for_human", 8)
    return result.run_id


def test_open_questions_are_listed(cli: Cli, run: str) -> None:
    for said in (cli("gates"), cli("gates", run), cli("gates", "latest")):
        assert said.code == 0
        for text in (run, "review", "Publish it?", *CHOICES):
            assert text in said.out
    (gate,) = [json.loads(line) for line in cli("gates", "--json").out.splitlines()]
    assert (gate["run"], gate["gate"], gate["question"], gate["choices"]) == (run, "review", "Publish it?", CHOICES)
    assert gate["shown"] == {"draft": "a draft"}


def test_gates_say_where_runs_in_folders_of_their_own_are_asked(cli: Cli, run: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    own = GATED.run(store=RunFolder(folder, SystemClock())).run_id
    said = cli("gates").out
    assert "own" not in said.partition("\nAnswer with")[0]
    assert "./pipeline.sh gates DIR" in said
    assert "review" in cli("gates", str(tmp_path / "own")).out
    assert "gates DIR" not in cli("gates", str(folder)).out
    assert cli("status", str(tmp_path / "nothing")).code == 3
    assert cli("answer", str(folder), "review", "A").code == 0
    assert GATED.resume(own, store=RunFolder(folder, SystemClock())).status == "completed"


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [("A", "[A] Approve"), ("[a] APPROVE", "[A] Approve"), ("rew", "Rework it")],
)  # fmt: skip
def test_answer_is_a_choice_its_key_or_its_label(cli: Cli, root: Path, run: str, typed: str, chosen: str) -> None:
    said = cli("answer", run, "review", typed, "--note", "looks fine")
    assert said.code == 0, said.err
    assert said.out.splitlines()[0] == f"review: {chosen}"
    assert f"--resume {run}" in said.out
    assert cli("answer", run, "review", "R").code == 2, "nothing is open"
    assert cli("gates").out.startswith("No open questions in the runs in files:")
    result = GATED.resume(run, store=FileStore(root, SystemClock()))
    assert result.status == "completed"
    assert result.outputs["review"] == {"said": chosen, "note": "looks fine"}


@pytest.mark.parametrize(
    ("gate", "choice", "said"),
    [("review", "maybe", "[A] Approve, [R] Reject, Rework it"), ("draft", "A", "Open questions: review"),
     ("review", "re", "is not a choice of"), ("review", "", "[A] Approve")],
)  # fmt: skip
def test_wrong_answer_names_the_right_ones(cli: Cli, run: str, gate: str, choice: str, said: str) -> None:
    wrong = cli("answer", run, gate, choice)
    assert wrong.code == 2
    assert said in wrong.err
    assert "review" in cli("gates").out


def test_answer_to_a_running_run_names_its_owner(cli: Cli, root: Path, run: str) -> None:
    journal = FileStore(root, SystemClock()).open(run)
    said = cli("answer", run, "review", "A")
    journal.close()
    assert said.code == 3
    assert str(os.getpid()) in said.err


def test_second_answer_to_a_question_is_told_the_first(root: Path, run: str) -> None:
    store = FileStore(root, SystemClock())
    (gate,) = gates(store)
    answer(store, run, gate.gate, "A", by="M. Reid", note="fine", question=gate.question)
    # By then the first may have resumed it.
    assert GATED.resume(run, store=store).status == "completed"
    with pytest.raises(DecidedMeanwhile) as refused:
        answer(store, run, gate.gate, "R", by="J. Low", question=gate.question)
    assert refused.value.code == "already_answered"
    assert [refused.value.data[name] for name in ("choice", "by", "note")] == ["[A] Approve", "M. Reid", "fine"]
    assert refused.value.data["at"]


def test_only_runs_that_ask_are_read(root: Path, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(root, SystemClock())
    read: list[str] = []

    def noted(place: Store, name: str) -> RunState:
        read.append(name)
        return load(place, name)

    monkeypatch.setattr("pipeline.app.gates.load", noted)
    assert [gate.run for gate in gates(store)] == [run]
    answer(store, run, "review", "A")
    read.clear()
    assert (list(gates(store)), read) == ([], [])


def test_run_that_was_removed_while_others_are_read_asks_nothing(root: Path, run: str) -> None:
    store = FileStore(root, SystemClock())
    newer = GATED.run(store=store).run_id
    found = gates(store)
    assert next(found).run == newer
    store.delete(run)
    assert list(found) == []
