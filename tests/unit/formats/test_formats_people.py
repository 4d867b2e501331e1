"""Nodes that ask people: choices from edges, kinds of questions, time limits, and who answers."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest

from pipeline.engine.events import Event
from pipeline.engine.people import Answer, Question
from pipeline.formats.attractor.handlers.interviewers import AutoApprove, Callback, Console, Queue, Recording
from tests.unit.formats.acting import Act

GATE = (
    'gate [shape=hexagon, label="Ship $goal?"]\nship [prompt=S]\nmend [prompt=M]\nstart -> gate\n'
    'gate -> ship [label="[A] Approve"]\ngate -> mend [label="R) Revise"]\nship -> exit\nmend -> gate'
)


def asked(text: str, *answers: Answer | str, **options: Any) -> tuple[Act, Recording]:
    act = Act(f'graph [goal="it"]\n{text}')
    person = Recording(Queue(answers))
    act.go(services={"interviewer": person}, **options)
    return act, person


@pytest.mark.parametrize("answer", ["[A] Approve", "a", "SHIP"])
def test_an_answer_leads_where_it_says(answer: str) -> None:
    act, person = asked(GATE, answer)
    assert act.order == ["start", "gate", "ship", "exit"]
    assert act.visit("gate").reason == "preferred_label"
    assert act.context("human.gate.label") == "[A] Approve"
    assert act.context("human.gate.selected") == "A"
    question = person.asked[0][0]
    assert (question.text, list(question.choices)) == ("Ship it?", ["[A] Approve", "R) Revise"])
    assert question.shown["keys"] == {"[A] Approve": "A", "R) Revise": "R"}


def test_an_answer_that_is_no_choice_is_asked_again_and_never_the_first_choice() -> None:
    act, person = asked(GATE, "perhaps", "revise", "a")
    assert act.order == ["start", "gate", "mend", "gate#2", "ship", "exit"]
    assert [question.shown.get("misunderstood") for question, _ in person.asked] == [None, "perhaps", None]


def test_three_answers_that_are_no_choice_fail_the_node() -> None:
    act, _ = asked(GATE, "x1", "x2", "x3")
    assert act.state.status == "failed"
    assert act.order == ["start", "gate"]
    assert "none of the choices" in str((act.visit("gate").error or {})["message"])


def test_where_nobody_answers_the_run_waits_and_goes_on_with_a_later_answer() -> None:
    act = Act(GATE)
    assert act.go().detail == "waiting_for_human"
    assert act.go(services={"interviewer": Queue([])}).detail == "waiting_for_human"
    assert act.go(services={"interviewer": Queue(["a"])}).status == "completed"


@pytest.mark.parametrize("mode", ["mode=freeform", "question_type=FREE_TEXT", "question_type=text"])
def test_a_free_question_takes_any_text(mode: str) -> None:
    act, person = asked(f'g [shape=hexagon, {mode}]\na [prompt="$human.gate.label"]\nstart -> g -> a -> exit',
                        "Blue whales")  # fmt: skip
    assert list(person.asked[0][0].choices) == []
    assert act.visit("g").outputs["response"] == "Blue whales"
    assert act.prompts == ["Blue whales"]


@pytest.mark.parametrize(
    ("mode", "edges", "answer", "order"),
    [
        ("mode=yes_no", "", "y", "start g exit"), ("mode=confirm", "", "Confirm", "start g exit"),
        # A no that no edge is drawn for stops, or takes the edge for failures; else it is a choice like others.
        ("mode=yes_no", "", "No", "start g"), ("mode=confirm", "", "cancel", "start g"),
        ('question_type="YES/NO"', "", "n", "start g"),
        ("mode=yes_no", 'g -> b [condition="outcome=fail"]', "no", "start g b exit"),
        ("mode=yes_no", 'g -> exit [label="[Y] Yes"]\ng -> b [label="[N] No"]', "no", "start g b exit"),
        # Choices without labels are the nodes that they lead to.
        ("label=Which", "g -> b", "b", "start g b exit"),
    ],
)  # fmt: skip
def test_a_no_is_never_taken_for_a_yes(mode: str, edges: str, answer: str, order: str) -> None:
    drawn = edges if "exit" in edges else f"g -> exit\n{edges}"
    node = "b [prompt=B]\nb -> exit" if edges else ""
    act, person = asked(f"g [shape=hexagon, {mode}]\nstart -> g\n{drawn}\n{node}", answer)
    assert (" ".join(act.order), len(person.asked[0][0].choices)) == (order, 2)
    assert act.state.status == ("completed" if "exit" in order else "failed")


TIMED = (
    'gate [shape=hexagon, timeout=60, human.default_choice="r"]\nmend [prompt=M]\nstart -> gate\n'
    'gate -> exit [label="[A] Approve"]\ngate -> mend [label="[R] Revise"]\nmend -> exit'
)


def test_the_default_is_taken_only_once_the_time_is_over() -> None:
    act = Act(TIMED)
    assert act.go().detail == "waiting_for_human"
    act.clock.advance(59)
    assert act.go().detail == "waiting_for_human"
    act.clock.advance(2)
    assert act.go().status == "completed"
    assert act.order == ["start", "gate", "mend", "exit"]
    assert act.visit("gate").outputs["by"] == "timeout"


def test_without_a_default_an_unanswered_question_is_put_again_until_it_has_failed() -> None:
    act = Act("g [shape=hexagon, timeout=60, max_retries=1]\nstart -> g -> exit")

    class Asleep:
        count = 0

        def ask(self, question: Question) -> Answer | None:
            self.count += 1
            act.clock.advance(question.seconds or 0)
            return None

    person = Asleep()
    result = act.go(services={"interviewer": person})
    assert (result.status, person.count) == ("failed", 2)
    assert act.order == ["start", "g"]


def test_who_answered_and_what_was_noted_is_kept() -> None:
    act, _ = asked(GATE, Answer("a", "looks good", "ann"))
    assert act.visit("gate").outputs == {
        "choice": "[A] Approve", "by": "ann", "note": "looks good", "preferred_label": "[A] Approve",
        "suggested_next_ids": ["ship"], "notes": "looks good",
    }  # fmt: skip
    assert act.context("human.gate.note") == "looks good"


# --- who answers


def question(*choices: str, **shown: Any) -> Question:
    return Question("r", "gate#1", "Well?", list(choices), shown)


@pytest.mark.parametrize(
    ("choices", "shown", "answer"),
    [
        (("[R] Reject", "[A] Approve"), {}, "[A] Approve"),
        (("one", "two"), {"default": "two"}, "two"),
        (("one", "two"), {}, "one"),
        ((), {}, "auto-approved"),
    ],
)
def test_auto_approval_says_yes(choices: tuple[str, ...], shown: dict[str, Any], answer: str) -> None:
    assert AutoApprove().ask(question(*choices, **shown)) == Answer(answer, by="auto-approve")


def test_a_callback_is_asked_and_a_queue_gives_its_answers_in_order_and_then_none() -> None:
    assert Callback(lambda asked: asked.choices[1]).ask(question("a", "b")) == Answer("b", by="callback")
    assert Callback(lambda asked: None).ask(question("a")) is None
    queue = Queue(["a", Answer("b", by="bob")])
    assert [queue.ask(question("a", "b")) for _ in range(3)] == [Answer("a", by="queue"), Answer("b", by="bob"), None]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Terminal:
    """A pseudo-terminal at which something has been typed, and what it shows."""

    def __init__(self, typed: str) -> None:
        self._keyboard, line = os.openpty()
        self.given, self.shown = os.fdopen(line, "r"), Screen()
        os.write(self._keyboard, typed.encode())

    def __enter__(self) -> Console:
        return Console(self.given, self.shown)

    def __exit__(self, *_: object) -> None:
        self.given.close()
        os.close(self._keyboard)


def test_without_a_terminal_or_in_a_run_that_stops_nobody_answers() -> None:
    assert Console(io.StringIO("a\n"), Screen()).ask(question("a")) is None
    with (there := Terminal("a\n")):
        assert Console(there.given, io.StringIO()).ask(question("a")) is None
        there.given.close()
        assert Console(there.given, Screen()).ask(question("a")) is None
    with Terminal("") as console:
        console(Event("stopping", "now"))
        assert console.ask(question("a")) is None


@pytest.mark.parametrize(
    ("typed", "asked", "answer"),
    [
        ("a\n", question("[A] Approve", "Revise"), "[A] Approve"),
        ("what\nr\n", question("Approve", "Revise"), "Revise"),
        ("\n", question("a", "b", default="b"), "b"), ("as I say\n", question(), "as I say"),
        ("\n", Question("r", "gate#1", "Well?", ["a"], {}, 0.05), None),
    ],
)  # fmt: skip
def test_what_is_typed_is_understood(typed: str, asked: Question, answer: str | None) -> None:
    with (there := Terminal(typed)) as console:
        assert console.ask(asked) == (Answer(answer, by="console") if answer else None)
    shown = there.shown.getvalue()
    assert all(part in shown for part in ("Well?", *asked.choices))
    assert ("none of them" in shown) == typed.startswith("what")
