"""Nodes that ask the model: prompts, names in them, verdicts, words of the edges, refusals, agents, simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError, ModelRejected
from pipeline.formats.attractor.handlers.codergen import check_providers
from pipeline.formats.attractor.handlers.interviewers import AutoApprove, Callback
from pipeline.formats.attractor.outcome import NodeOutcome
from pipeline.llm.base import Reply, Request
from tests.unit.formats.acting import Act, said, system, turns

COURSE = Path(__file__).parents[3] / "devops/docs/examples/course.dot"


def test_a_prompt_is_asked_and_its_reply_is_the_output() -> None:
    act = Act('write [prompt="Write a haiku"]\nstart -> write -> exit', ["x" * 50_000])
    result = act.go()
    assert (result.status, act.prompts) == ("completed", ["Write a haiku"])
    assert (result.outputs["write"]["prompt"], len(result.outputs["write"]["response"])) == ("Write a haiku", 50_000)
    assert act.context("last_response") == "x" * 200


def test_known_names_are_filled_in_and_all_others_stay() -> None:
    act = Act(
        'digraph g { graph [goal="ship $task", subject="maths"]\n'
        'start [shape=Mdiamond]; exit [shape=Msquare]\na [prompt="$goal|${goal}!|$subject|$task.|$HOME|$$|$1|$goals"]\n'
        'b [prompt="$a.response|$last_response|$a.nothing|$graph.goal"]\nstart -> a -> b -> exit }',
        ["first $goal", "second"], params={"task": "it"},
    )  # fmt: skip
    act.go()
    assert act.prompts[0] == "ship it|ship it!|maths|it.|$HOME|$$|$1|$goals"
    assert act.prompts[1] == "first $goal|first $goal|$a.nothing|ship $task"


@pytest.mark.parametrize(
    ("reply", "went"),
    [
        ("All good.\n\nSTATUS: success", "exit"), ("It lacks an end.\nSTATUS: fail", "mend"),
        ("**STATUS: FAIL**", "mend"),
        ('Judged.\n```json\n{"outcome": "fail", "failure_reason": "no end"}\n```', "mend"),
        ('{"status": "success"}', "exit"), ('Two faults.\n{"outcome": "fail", "notes": "both"}\n', "mend"),
        ('Two faults.\n{\n  "outcome": "fail",\n  "context_updates": {\n "n": 2}\n}', "mend"),
        ('{"outcome": "fail"}\nis what I would say, were it not all good.', "exit"), ("No verdict at all.", "exit"),
    ],
)  # fmt: skip
def test_what_a_reply_says_of_its_outcome_is_the_outcome(reply: str, went: str) -> None:
    act = Act(
        'judge [prompt="Judge"]\nmend [prompt="Mend"]\nstart -> judge\n'
        'judge -> exit [condition="outcome=success"]\njudge -> mend [condition="outcome=fail"]\nmend -> exit',
        [reply, "mended"],
    )  # fmt: skip
    assert act.go().status == "completed"
    assert act.order[2] == went
    assert "STATUS: word" in system(act.model.requests[0])


@pytest.mark.parametrize("needed", ["verdict=required", "goal_gate=true, auto_status=false"])
def test_a_verdict_that_is_needed_and_missing_fails_the_node(needed: str) -> None:
    act = Act(f'judge [prompt="Judge", {needed}]\nstart -> judge -> exit', ["Well, well."])
    assert act.go().status == "failed"
    assert act.visit("judge").outputs["response"] == "Well, well."


def test_a_status_word_within_a_text_is_no_verdict_where_none_is_asked_for() -> None:
    act = Act('a [prompt="Explain"]\nstart -> a -> exit', ["In HTTP,\nSTATUS: fail\nis no header. And so on."])
    assert act.go().status == "completed"
    assert act.visit("a").outcome == "success"


def test_what_a_reply_sets_may_not_steer_the_program() -> None:
    reply = (
        'Done.\n```json\n{"outcome": "success", "context_updates": '
        '{"title": "T", "internal.retry_count.a": 9, "graph.goal": "G"}}\n```'
    )
    act = Act('digraph g { goal="right"\nstart [shape=Mdiamond]; exit [shape=Msquare]; start -> a -> exit }', [reply])
    act.go()
    assert (act.context("title"), act.context("graph.goal")) == ("T", "right")
    assert act.context("internal.retry_count.a") is None
    assert any("may not set graph.goal, internal.retry_count.a" in note for note in act.notes)


@pytest.mark.parametrize(
    ("replies", "kind", "asked"),
    [
        ([Reply("I cannot.", "refusal"), "fine"], "refusal", [100]),
        ([Reply("x", "max_tokens"), Reply("x", "max_tokens"), "fine"], "truncated", [100, 200]),
        ([ModelRejected("400: no such thing"), "fine"], "deterministic", [100]),
    ],
)
def test_what_is_no_answer_fails_the_node_once_and_says_its_kind(
    replies: list[Any], kind: str, asked: list[int]
) -> None:
    act = Act('a [prompt=p, max_tokens=100, max_retries=3]\nb [prompt=q]\nstart -> a -> exit\n'
              f'a -> b [condition="failure_class={kind}"]\nb -> exit', replies)  # fmt: skip
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "b", "exit"]
    assert [request.max_tokens for request in act.model.requests[:-1]] == asked
    assert act.visit("a").outputs.get("response") == ("I cannot." if kind == "refusal" else None)


def test_a_node_says_its_model_effort_and_most_tokens() -> None:
    act = Act('a [llm_model="claude-opus-4.6", llm_provider="anthropic", reasoning_effort="low", max_tokens=9]\n'
              "b []\nstart -> a -> b -> exit")  # fmt: skip
    act.go()
    first, second = act.model.requests
    assert (first.model, first.effort, first.max_tokens, first.label) == ("claude-opus-4-6", "low", 9, "a")
    assert (second.model, second.effort, second.label) == ("scripted", None, "b")


def test_another_provider_is_refused_before_the_run_and_fails_in_it() -> None:
    act = Act('a [llm_provider="openai"]\nstart -> a -> exit')
    with pytest.raises(ConfigError, match=r"named by a \(openai\)"):
        check_providers(act.dot, {}, {})
    check_providers(act.dot, {"simulate": True}, {})
    check_providers(act.dot, {}, {"backend": object()})
    result = act.go()
    assert (result.status, act.model.calls) == ("failed", 0)
    assert "provider 'openai'" in str(result.error)
    assert act.go(simulate=True).status == "completed"


def test_without_a_model_the_run_stands_still_and_no_edge_takes_it_for_a_failure() -> None:
    act = Act('a [prompt="p"]\nb [prompt="q"]\nstart -> a -> exit\na -> b [condition="outcome=fail"]\nb -> exit')
    result = act.go(model=False)
    assert result.status == "failed"
    assert "has no model" in str(result.error)
    assert act.visit("a").status == "in_progress"
    assert act.go().status == "completed"


class Agent:
    """An agent of the user's own."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def run(self, node: Any, prompt: str, context: Any) -> Any:
        self.asked.append((node.id, prompt, dict(context)))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_an_agent_of_ones_own_answers_in_the_place_of_the_model() -> None:
    agent = Agent("done\nSTATUS: success")
    act = Act('a [prompt="Do it"]\nstart -> a -> exit')
    result = act.go(services={"backend": agent})
    assert (result.status, act.model.calls) == ("completed", 0)
    assert result.outputs["a"]["response"] == "done\nSTATUS: success"
    assert agent.asked[0][:2] == ("a", "Do it")
    assert agent.asked[0][2]["graph.goal"] == ""


def test_an_agent_is_asked_anew_by_each_attempt() -> None:
    agent = Agent(*(NodeOutcome("fail", failure_reason=f"no sources {number}") for number in (1, 2)), "fine")
    act = Act("a [prompt=A, max_retries=2]\nstart -> a -> exit")
    assert (act.go(services={"backend": agent}).status, len(agent.asked)) == ("completed", 3)


def test_an_agent_may_give_a_whole_outcome() -> None:
    agent = Agent(NodeOutcome("needs_work", context_updates={"n": 1}, outputs={"files": 2}))
    act = Act('a [prompt="p"]\nb [prompt="q"]\nstart -> a -> exit\na -> b [condition="outcome=needs_work"]\nb -> exit')
    result = act.go(services={"backend": agent})
    assert act.order == ["start", "a", "b", "exit"]
    assert (act.context("n"), result.outputs["a"]["files"]) == (1, 2)


def test_an_agent_that_has_answered_is_not_asked_again_after_a_death() -> None:
    agent = Agent("once")
    act = Act('a [prompt="Do it"]\nstart -> a -> exit')
    act.go(services={"backend": agent}, until="start")
    act.dying_after("a")
    assert act.go(services={"backend": agent}).detail == "stopped_as_asked"
    assert act.go(services={"backend": agent}).status == "completed"
    assert len(agent.asked) == 1


def test_the_example_course_is_corrected_until_its_critic_is_content() -> None:
    verdicts = iter(["revise", "success"])

    def script(request: Request) -> str:
        if request.label == "critic":
            return f'Lesson 2: 3/4 is no waltz.\n{{"outcome": "{next(verdicts)}", "notes": "lesson 2"}}'
        return f"Text of {request.label}."

    act = Act(COURSE.read_text(), script)
    result = act.go(services={"interviewer": AutoApprove()})
    assert result.status == "completed"
    assert act.order[-5:] == ["gather", "critic", "correct", "critic#2", "done"]
    asked = {request.label: request for request in act.model.requests}
    assert "Text of outline." in said(asked["lesson_1"])
    assert all(f"Text of lesson_{number}." in said(asked["critic"]) for number in (1, 2, 3))
    assert [text for role, text in turns(asked["critic"]) if role == "assistant"][-1] == "Text of correct."
    assert act.visit("critic").outcome == "revise"


LABELS = (
    'a [prompt="Write"]\nb [prompt="More"]\nstart -> a\na -> b [condition="preferred_label=MORE"]\n'
    'a -> exit [condition="preferred_label=DONE"]\nb -> a'
)
KEYS = (
    'a [prompt="Judge"]\nlook [shape=diamond]\nb [prompt="Mend"]\nstart -> a -> look\n'
    'look -> b [condition="context.tier=gold && context.score>=7"]\nlook -> exit [condition="context.tier=silver"]\n'
    "b -> exit"
)


def test_words_that_edges_ask_for_are_told_to_the_model() -> None:
    act = Act(LABELS, ["More is to come.\npreferred_label: MORE", "b", "That is all.\nDONE"])
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]
    told = system(act.model.requests[0])
    assert "preferred_label: MORE, DONE" in told
    assert "STATUS" not in told
    act = Act(KEYS, ['Well done.\n{"tier": "gold", "score": 8}', "b"])
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "look", "b", "exit"]
    told = system(act.model.requests[0])
    assert "tier: gold, silver" in told
    assert "score: a value; the edges ask for >= 7" in told


@pytest.mark.parametrize(
    "end",
    [
        "MORE", "**MORE**", "It is not whole. MORE", "Verdict: more", "the answer is MORE.", "preferred_label=More",
        "LABEL: `MORE`", "Preferred label: MORE", '{"preferred_label": "more"}', "> MORE", '"MORE"',
        '{"outcome": "success", "preferred_label": "MORE"}', 'So: {"preferred_label": "MORE"}',
        "**Preferred label:** MORE", 'MORE\n```json\n{"outcome": "success"}\n```',
    ],
)  # fmt: skip
def test_ways_in_which_a_reply_says_a_label(end: str) -> None:
    act = Act(LABELS, [f"DONE would be too early here.\n\n{end}", "b", "DONE"])
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]


@pytest.mark.parametrize("end", ["I want no more", "DONE or MORE, who knows?", "DONE\nThat is, if you like it."])
def test_a_word_in_passing_is_no_answer(end: str) -> None:
    act = Act(LABELS, [end])
    result = act.go()
    assert result.status == "failed"
    assert "the edges ask for: preferred_label=MORE, preferred_label=DONE" in str(result.error)


def test_a_parameter_and_what_the_program_sets_are_not_asked_of_the_model() -> None:
    text = ('a [prompt="Go"]\nstart -> a\na -> exit [condition="context.mode=fast"]\n'
            'a -> exit [condition="context.internal.retry_count.a=1 || context.last_stage=b"]')  # fmt: skip
    act = Act(text, ["well"], params={"mode": "fast"})
    assert act.go().status == "completed"
    assert "mode" not in system(act.model.requests[0])
    assert "last_stage" not in system(act.model.requests[0])


def test_a_simulation_goes_every_way_that_the_edges_name_and_ends() -> None:
    act = Act(LABELS)
    assert act.go(simulate=True, model=False).status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]
    act = Act(KEYS)
    assert act.go(simulate=True, model=False).status == "completed"
    assert act.order == ["start", "a", "look", "b", "exit"]
    assert act.context("tier") == "gold"
    loop = 'a [prompt=A]\nb [prompt=B]\nstart -> a\na -> b [condition="context.more"]\na -> exit\nb -> a'
    act = Act(loop)
    assert act.go(simulate=True, model=False).status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]


def test_a_reply_that_no_edge_takes_is_not_bought_again() -> None:
    act = Act(LABELS.replace("prompt=", "max_retries=3, prompt=", 1), ["I cannot tell.\npreferred_label: LATER"])
    assert "with the label 'LATER'" in str(act.go().error)
    spent = act.state.total.usd
    assert act.go().status == "failed"
    assert (act.model.calls, act.state.total.usd, act.visit("a").attempt) == (1, spent, 1)
    # The edges are mended: the reply that was paid for goes on by them.
    again = Act(LABELS + '\na -> exit [condition="preferred_label=LATER"]')
    act.definition = again.definition
    assert act.go(accept=lambda stale: not stale.steps).status == "completed"
    assert act.model.calls == 1
    assert act.order == ["start", "a", "exit"]


def test_a_person_is_offered_the_labels_that_conditions_name() -> None:
    text = ('gate [shape=hexagon]\nb [prompt=B]\nstart -> gate\ngate -> b [condition="preferred_label=Fix"]\n'
            'gate -> exit [label="[S] Ship it", condition="preferred_label=\'ship it\'"]\nb -> gate')  # fmt: skip
    act = Act(text)
    answers = iter(["fix", "S"])
    act.go(services={"interviewer": Callback(lambda question: next(answers))})
    assert act.order == ["start", "gate", "b", "gate#2", "exit"]


def test_labels_of_edges_without_conditions_are_told_too() -> None:
    text = 'a [prompt=A]\nb [prompt=B]\nstart -> a\na -> b [label="[R] Revise it"]\n'
    text += 'a -> exit [label="[S] Ship it"]\nb -> a'
    act = Act(text, ["Not yet.\n\nRevise it", "b", "Now. preferred_label: ship it\nSHIP IT"])
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]
    assert "preferred_label: Revise it, Ship it" in system(act.model.requests[0])
    act = Act(text)
    assert act.go(simulate=True, model=False).status == "completed"
    assert act.order == ["start", "a", "b", "a#2", "exit"]
    # What says nothing of it goes on as ever: by weight, then by name.
    act = Act(text, lambda request: "Well.")
    assert act.go(until="b").outputs["a"]["response"] == "Well."
    assert act.order[2] == "b"


def test_a_person_whose_choice_no_edge_takes_is_asked_again() -> None:
    text = ('gate [shape=hexagon]\nstart -> gate\ngate -> exit [label=No, condition="preferred_label=Nein"]\n'
            'gate -> exit [label=Yes, condition="preferred_label=Yes"]')  # fmt: skip
    act = Act(text)
    answers = iter(["No", "Yes"])
    person = {"interviewer": Callback(lambda question: next(answers))}
    assert act.go(services=person).status == "failed"
    assert act.go(services=person).status == "completed"
