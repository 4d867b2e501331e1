"""Fan-outs gathered: join policies, what the branches gave, the best of them, and a resume in their midst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.llm.base import Request
from tests.unit.formats.acting import Act, said


def fan(policy: str = "", *, gather: str = "", more: str = "") -> str:
    return (
        f"fan [shape=component, {policy}]\nx [prompt=X]\ny [prompt=Y]\nz [prompt=Z]\n"
        f"all [shape=tripleoctagon, {gather}]\nlast [prompt=Last]\nstart -> fan\nfan -> x -> all\nfan -> y -> all\n"
        f'fan -> z -> all\nall -> last [condition="outcome!=fail"]\nall -> exit [condition="outcome=fail"]\n'
        f"last -> exit\n{more}"
    )


def failing(*nodes: str) -> Any:
    def script(request: Request) -> str:
        word = "fail" if request.label in nodes else "success"
        return f"from {request.label}\nSTATUS: {word}"

    return script


@pytest.mark.parametrize(
    ("policy", "failed", "outcome"),
    [
        ("", "", "success"),
        ("", "x", "partial_success"),
        ("join_policy=wait_all", "xy", "partial_success"),
        ("", "xyz", "fail"),
        ("join_policy=first_success", "xy", "success"),
        ("join_policy=first_success", "xyz", "fail"),
        ("join_policy=quorum", "x", "success"),
        ("join_policy=quorum", "xy", "fail"),
        ("join_policy=quorum, quorum=1", "xy", "success"),
        ("join_policy=quorum, quorum=0.9", "x", "fail"),
        ("join_policy=k_of_n, k=2", "x", "success"),
        ("join_policy=k_of_n, k=3", "x", "fail"),
        ("join_policy=k_of_n", "", "fail"),
        ("join_policy=nonsense", "x", "partial_success"),
    ],
)
def test_a_join_policy_judges_the_branches(policy: str, failed: str, outcome: str) -> None:
    for text in (fan(policy), fan(gather=policy)):
        act = Act(text, failing(*failed))
        assert act.go().status == "completed"
        assert act.visit("all").outcome == outcome


def test_what_the_branches_gave_is_published_and_not_merged() -> None:
    def script(request: Request) -> str:
        document = {"outcome": "success", "context_updates": {"k": request.label}}
        return f"Text of {request.label}\n```json\n{json.dumps(document)}\n```"

    act = Act(fan(), script)
    act.go()
    results = act.context("parallel.results")
    assert [row["id"] for row in results] == ["x", "y", "z"]
    assert [row["context_updates"]["k"] for row in results] == ["x", "y", "z"]
    assert results[0]["response"].startswith("Text of x")
    assert act.context("parallel.fan_in.best_id") == "x"
    assert act.context("parallel.fan_in.best_outcome") == "success"
    assert act.visit("last").reads.get("context.k") in (None, "missing")


def test_the_best_branch_is_by_outcome_then_score_then_name() -> None:
    scores = {"x": ("fail", 9), "y": ("success", 1), "z": ("success", 5)}

    def script(request: Request) -> str:
        word, score = scores.get(request.label, ("success", 0))
        return f'```json\n{{"outcome": "{word}", "context_updates": {{"score": {score}}}}}\n```'

    act = Act(fan(), script)
    act.go()
    assert act.context("parallel.fan_in.best_id") == "z"


def test_a_model_may_choose_the_best() -> None:
    def script(request: Request) -> str:
        if request.label == "all":
            return "All are fine, but\n**BEST: y**"
        return f"from {request.label}"

    act = Act(fan(gather='prompt="Which reads best for $goal?"'), script)
    act.go()
    asked = next(request for request in act.model.requests if request.label == "all")
    assert all(part in said(request=asked) for part in ("## x (success)\nfrom x", "## z (success)"))
    assert act.context("parallel.fan_in.best_id") == "y"
    assert act.visit("all").outputs["response"].endswith("**BEST: y**")


def test_a_choice_of_none_of_them_leaves_the_rule_to_decide() -> None:
    act = Act(fan(gather="prompt=Best"), lambda request: "BEST: w" if request.label == "all" else "text")
    act.go()
    assert act.context("parallel.fan_in.best_id") == "x"


def test_a_simulation_ranks_without_a_model() -> None:
    act = Act(fan(gather="prompt=Best"))
    assert act.go(simulate=True, model=False).status == "completed"
    assert act.context("parallel.fan_in.best_id") == "x"


def test_branches_of_several_nodes_are_known_by_their_first() -> None:
    act = Act(
        "fan [shape=component]\na [prompt=A]\na2 [prompt=A2]\nb [prompt=B]\nall [shape=tripleoctagon]\n"
        "start -> fan\nfan -> a -> a2 -> all\nfan -> b -> all\nall -> exit"
    )
    act.go()
    rows = act.context("parallel.results")
    assert [(row["id"], row["node"]) for row in rows] == [("a", "a2"), ("b", "b")]


def test_a_resume_in_the_midst_of_a_fan_out_pays_nothing_twice() -> None:
    broken = {"y": True}

    def script(request: Request) -> Any:
        if broken.get(request.label):
            raise KeyboardInterrupt
        return f"from {request.label}"

    act = Act(fan(), script)
    assert act.go(concurrency=1).status == "in_progress"
    broken.clear()
    assert act.go().status == "completed"
    asked = [request.label for request in act.model.requests]
    assert sorted(asked) == ["last", "x", "y", "y", "z"]
    assert act.visit("all").outcome == "success"


def test_long_replies_of_branches_do_not_fill_the_context() -> None:
    act = Act(fan(), lambda request: "x" * 100_000)
    act.go()
    results = act.context("parallel.results")
    assert len(str(results)) < 20_000
    assert len(act.go().outputs["x"]["response"]) == 100_000
