"""Acceptance cases of layered DAGs: settings, secrets and decisions (42, 43)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import SecretRefused, WaitingForHuman
from pipeline.records.run import bare
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.layered import Layered, chain, dag, state
from tests.said import Cli


def test_case_42_the_stored_timeout_is_used_and_said(layered: Layered) -> None:
    layered.bad = {"t2": "crash"}
    used: list[Any] = []
    layered.meanwhile = lambda call: used.append(call.config["timeout"])
    run = layered.execute(chain(2), config={"timeout": 30}).run_id
    layered.bad = {}
    result = layered.resume(run, config={"timeout": 60})
    assert (result.status, used) == ("completed", [30, 30, 30])
    assert any("timeout is 30, as the run began with; not 60" in text for text in result.warnings)
    checkpoint = layered.latest(run)
    assert checkpoint.to_json()["execution_config"]["timeout"] == 30


def test_case_42_a_setting_given_to_the_resume_itself_is_recorded(layered: Layered) -> None:
    layered.bad = {"t2": "crash"}
    used: list[Any] = []
    layered.meanwhile = lambda call: used.append(call.config["timeout"])
    run = layered.execute(chain(2), config={"timeout": 30}).run_id
    layered.bad = {}
    result = layered.executor().resume_from_checkpoint(run, config={"timeout": 45})
    assert used == [30, 30, 45]
    assert any("timeout is 45 from here on; it was 30" in text for text in result.warnings)
    checkpoint = layered.latest(run)
    assert checkpoint.config["timeout"] == 45


def test_case_42_no_secret_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-api03-never-to-be-stored-0123456789"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    layered = Layered(FileStore(tmp_path, SystemClock()))
    for config in ({"apiKey": "x"}, {"llm": {"api_key": "x"}}, {"headers": [{"Authorization": "x"}]}, {"note": key}):
        with pytest.raises(SecretRefused):
            layered.execute(chain(1), config=config)
        with pytest.raises(SecretRefused):
            layered.checkpoints.save_checkpoint(state(), chain(1), 0, config)
    for given in ({"password": "x"}, {"db": {"client_secret": "x"}}, {"text": f"see {key}"}):
        with pytest.raises(SecretRefused):
            layered.execute(chain(1), given)
        with pytest.raises(SecretRefused):
            layered.checkpoints.save_checkpoint(state(context=given), chain(1), 0)
        with pytest.raises(SecretRefused):
            layered.execute(dag("a:", a={"arguments": given}))
    layered.execute(chain(2), {"cache_key": "fine", "max_tokens": 3})
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert stored
    assert key.encode() not in stored


def crashed(layered: Layered, **gates: Any) -> str:
    """A run of three layers that failed in its second, the first one approved."""
    layered.bad = {"t2": "crash"}
    run = layered.execute(chain(3), **gates).run_id
    layered.bad = {}
    return run


def test_case_43_a_resume_asks_at_the_same_points(layered: Layered) -> None:
    asked: list[tuple[str, int]] = []

    def human(question: Any) -> bool:
        asked.append(("human", question.shown["layer_index"]))
        return True

    def agent(question: Any) -> str:
        asked.append(("agent", question.shown["layer_index"]))
        return "continue"

    run = crashed(layered, hil=human, ail=agent)
    assert asked == [("agent", 0), ("human", 0)]
    asked.clear()
    result = layered.resume(run, hil=human, ail=agent)
    assert (result.status, layered.ran) == ("completed", ["t2", "t3"])
    assert asked == [(kind, layer) for layer in (1, 2) for kind in ("agent", "human")]
    told = [(event["decisionType"], event["layerIndex"]) for event in layered.told("decision_required")]
    assert told == asked
    assert [(row["kind"], row["layer_index"], row["outcome"]) for row in result.state.decisions] == [
        (kind, layer, word) for layer in range(3) for kind, word in (("agent", "continue"), ("human", "approve"))
    ]


def test_case_43_a_rejection_aborts_and_stays(layered: Layered) -> None:
    run = crashed(layered, hil=lambda question: True)
    result = layered.resume(run, hil=lambda question: "reject")
    assert (result.status, layered.ran) == ("aborted", ["t2"])
    assert "aborted by human" in str(result.error)
    assert "aborted by human" in layered.told("workflow_abort")[0]["reason"]
    # The answer is recorded: it is not asked again, and nothing runs.
    result = layered.resume(run, hil=lambda question: True)
    assert (result.status, layered.ran, layered.told("decision_required")) == ("aborted", [], [])
    assert result.state.decisions[-1]["outcome"] == "reject"


@pytest.mark.parametrize("silence", ["none", "raises"])
def test_case_43_no_answer_in_time_aborts_and_is_asked_again(layered: Layered, silence: str) -> None:
    def human(question: Any) -> None:
        if silence == "raises":
            raise TimeoutError

    run = crashed(layered, hil=lambda question: True)
    result = layered.resume(run, hil=human)
    assert (result.status, layered.ran) == ("aborted", ["t2"])
    assert "aborted: no human decision came in time" in str(result.error)
    assert len(result.state.decisions) == 1
    result = layered.resume(run, hil=lambda question: "approve")
    assert (result.status, layered.ran) == ("completed", ["t3"])


def test_case_43_a_gate_nobody_answers_waits_and_is_never_passed(layered: Layered) -> None:
    result = layered.execute(chain(2), hil=True)
    assert (result.status, result.detail, result.exit_code, layered.ran) == (
        "in_progress",
        "waiting_for_human",
        8,
        ["t1"],
    )
    assert isinstance(result.error, WaitingForHuman)
    # An executor that knows of no gates does not pass them either.
    result = layered.resume(result.run_id)
    assert (result.detail, layered.ran) == ("waiting_for_human", [])
    assert any("human gates" in text for text in result.warnings)
    result = layered.resume(result.run_id, hil=lambda question: True)
    assert (result.status, layered.ran) == ("completed", ["t2"])


def test_case_43_an_answer_given_on_the_command_line_is_used(cli: Cli, root: Path) -> None:
    layered = Layered(FileStore(root, SystemClock()))
    run = layered.execute(chain(1), hil=True).run_id
    gate = bare(next(iter(load(layered.store, run).questions)))
    assert cli("answer", run, gate, "approve", "--note", "fine").code == 0
    result = layered.resume(run, hil=True)
    assert (result.status, result.state.decisions[0]["note"]) == ("completed", "fine")
