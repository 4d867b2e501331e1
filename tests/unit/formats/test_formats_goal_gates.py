"""Goal gates: the exit opens when all visited ones are satisfied, and goes back a bounded number of times."""

from __future__ import annotations

from pipeline.engine.result import RunResult
from pipeline.formats.attractor.outcome import failure
from tests.unit.formats.playing import ENDS, Play, Said, played

#: The gate's failure is routed on, so that it is the exit that asks.
TEXT = f"""{ENDS}
start -> plan -> review
review [goal_gate=true, retry_target=plan]
review -> exit
review -> exit [condition="outcome!=success"]"""


def reviewed(said: Said, text: str = TEXT) -> tuple[Play, RunResult]:
    return played(text, {"review": said})


def test_exit_goes_back_to_the_retry_target_of_an_unsatisfied_gate() -> None:
    play, result = reviewed([failure("thin"), failure("thinner"), "success"])
    assert result.status == "completed"
    assert play.order == ["start", *["plan", "review", "exit"] * 3]
    leave = play.state.steps["exit#1"]
    assert (list(leave.edges), leave.reason) == (["exit->plan#gate:review"], "goal_gate")
    assert play.told("goal_gate_status") == {"review": "satisfied"}


def test_partial_success_satisfies_a_gate_and_a_word_of_its_own_does_not() -> None:
    assert reviewed("partial_success")[1].status == "completed"
    _, result = reviewed("pass")
    assert result.status == "failed"
    assert "review" in str(result.error)


def test_gate_is_gone_back_for_three_times_then_the_run_fails_and_names_it() -> None:
    play, result = reviewed("needs work")
    assert (result.status, play.count("review")) == ("failed", 4)
    assert "Goal gate unsatisfied: review (went back for it 3 times)" in str(result.error)
    assert play.told("goal_gate_status") == {"review": "unsatisfied"}
    assert play.go().status == "failed", "the count is in the records"
    assert play.count("review") == 4


def test_gate_says_how_often_it_is_gone_back_for() -> None:
    text = TEXT.replace("goal_gate=true", "goal_gate=true, max_retries=1")
    play, _ = reviewed("needs work", text)
    assert play.count("review") == 2


def test_gate_without_a_way_back_fails_the_run() -> None:
    play, result = reviewed("needs work", TEXT.replace(", retry_target=plan", ""))
    assert (result.status, play.count("review")) == ("failed", 1)
    assert "it names no retry_target" in str(result.error)


def test_retry_targets_of_the_graph_serve_its_gates() -> None:
    text = TEXT.replace(", retry_target=plan", "") + "\nfallback_retry_target=start"
    play, result = reviewed(["no", "success"], text)
    assert (result.status, play.count("start")) == ("completed", 2)


def test_gate_that_was_not_visited_is_not_asked_about() -> None:
    text = f'{TEXT}\nplan -> exit [condition="outcome=skip_it"]'
    play, result = played(text, {"plan": "skip_it", "review": "fail"})
    assert (result.status, play.order) == ("completed", ["start", "plan", "exit"])
    assert play.told("goal_gate_status") == {"review": "pending"}


def test_first_gate_in_order_of_declaration_decides_where_to() -> None:
    text = f"""{ENDS}
one [goal_gate=true, retry_target=start]
two [goal_gate=true, retry_target=one]
start -> one -> two -> exit"""
    play, _ = played(text, {"two": ["no", "success"], "one": ["no", "no", "success"]})
    assert play.order == ["start", *["one", "two", "exit", "start"] * 2, "one", "two", "exit"]


def test_newest_visit_of_a_gate_counts() -> None:
    text = f"""{ENDS}
start -> plan -> review
review [goal_gate=true, retry_target=plan]
review -> exit
review -> plan [condition="outcome=fail"]"""
    play, result = played(text, {"review": [failure("thin"), "success"]})
    assert (result.status, play.order.count("exit")) == ("completed", 1)


def test_gate_that_fails_goes_back_by_itself_and_has_the_same_limit() -> None:
    text = f"{ENDS}start -> plan -> review -> exit\nreview [goal_gate=true, retry_target=plan]"
    play, result = reviewed([failure("thin"), "success"], text)
    assert (result.status, play.reason("review#1")) == ("completed", "retry_target")
    play, result = reviewed(failure("thin"), text)
    assert (play.count("review"), "Goal gate unsatisfied: review" in str(result.error)) == (4, True)
    assert "thin" in str(result.error)


def test_gate_with_two_ways_back_takes_the_second_when_the_first_is_used_up() -> None:
    text = f"""{ENDS}
start -> a -> b -> review
a [max_visits=2]
review [goal_gate=true, retry_target=a, fallback_retry_target=b]
review -> exit"""
    play, _ = reviewed(["no", "no", "success"], text)
    assert play.order.count("a") == 2
    assert play.order[-4:] == ["exit", "b", "review", "exit"]


def test_gates_are_told_in_the_context_too() -> None:
    play, _ = reviewed(["no", "success"])
    assert play.state.steps["review#1"].context["_goal_gates"] == {"review": "unsatisfied"}
    assert play.state.context["_goal_gates"] == {"review": "satisfied"}
