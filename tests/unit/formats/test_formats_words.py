"""Edges that ask for a label or a context key: the model is told their words, and what it says of them counts."""

from __future__ import annotations

import pytest

from pipeline.formats.attractor.handlers.interviewers import Callback
from tests.unit.formats.acting import Act, system

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
