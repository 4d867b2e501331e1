"""Nodes that ask people: choices from edges, kinds of questions, time limits, and who answers."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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


@pytest.mark.parametrize("answer", ["[A] Approve", "Approve", "approve", "a", "A", "ship", "SHIP"])
def test_an_answer_leads_where_it_says(answer: str) -> None:
    act, person = asked(GATE, answer)
    assert act.order == ["start", "gate", "ship", "exit"]
    assert act.visit("gate").reason == "preferred_label"
    assert act.context("human.gate.label") == "[A] Approve"
    assert act.context("human.gate.selected") == "A"
    question = person.asked[0][0]
    assert (question.text, list(question.choices)) == ("Ship it?", ["[A] Approve", "R) Revise"])
    assert question.shown["keys"] == {"[A] Approve": "A", "R) Revise": "R"}


def test_each_visit_asks_anew() -> None:
    act, person = asked(GATE, "r", "a")
    assert act.order == ["start", "gate", "mend", "gate#2", "ship", "exit"]
    assert len(person.asked) == 2


def test_an_answer_does_not_steer_what_comes_later() -> None:
    act, _ = asked(
        "g [shape=hexagon]\nx [prompt=X]\ny [prompt=Y]\nz [prompt=Z]\nstart -> g\ng -> x [label=b]\ng -> y [label=a]\n"
        'x -> z [label="a"]\nx -> exit [label="b"]\ny -> z\nz -> exit',
        "b",
    )
    # x has no preferred label of its own: weight and name decide.
    assert act.order == ["start", "g", "x", "exit"]
    assert act.visit("x").reason == "id"


def test_an_answer_that_is_no_choice_is_asked_again_and_never_the_first_choice() -> None:
    act, person = asked(GATE, "perhaps", "revise", "a")
    assert act.order == ["start", "gate", "mend", "gate#2", "ship", "exit"]
    assert [question.shown.get("misunderstood") for question, _ in person.asked] == [None, "perhaps", None]


def test_three_answers_that_are_no_choice_fail_the_node() -> None:
    act, _ = asked(GATE, "x1", "x2", "x3")
    assert act.state.status == "failed"
    assert act.order == ["start", "gate"]
    assert "none of the choices" in str((act.visit("gate").error or {})["message"])


def test_two_choices_with_one_key_are_not_guessed_between() -> None:
    act, person = asked(
        "g [shape=hexagon]\nstart -> g\ng -> exit [label=Send]\ng -> b [label=Stop]\nb [prompt=B]\nb -> exit",
        "s",
        "send",
    )
    assert len(person.asked) == 2
    assert act.order == ["start", "g", "exit"]


def test_where_nobody_answers_the_run_waits_and_goes_on_with_a_later_answer() -> None:
    act = Act(GATE)
    assert act.go().detail == "waiting_for_human"
    assert act.go(services={"interviewer": Queue([])}).detail == "waiting_for_human"
    assert act.go(services={"interviewer": Queue(["a"])}).status == "completed"


def test_choices_without_labels_are_the_nodes_they_lead_to() -> None:
    act, person = asked("g [shape=hexagon]\nb [prompt=B]\nstart -> g\ng -> exit\ng -> b\nb -> exit", "b")
    assert list(person.asked[0][0].choices) == ["exit", "b"]
    assert act.order == ["start", "g", "b", "exit"]


@pytest.mark.parametrize("mode", ["mode=freeform", "question_type=FREE_TEXT", "question_type=text"])
def test_a_free_question_takes_any_text(mode: str) -> None:
    act, person = asked(f'g [shape=hexagon, {mode}]\na [prompt="$human.gate.label"]\nstart -> g -> a -> exit',
                        "Blue whales")  # fmt: skip
    assert list(person.asked[0][0].choices) == []
    assert act.visit("g").outputs["response"] == "Blue whales"
    assert act.prompts == ["Blue whales"]


@pytest.mark.parametrize(
    ("mode", "answer", "status"),
    [
        ("mode=yes_no", "y", "completed"),
        ("mode=yes_no", "yes", "completed"),
        ("mode=yes_no", "No", "failed"),
        ("mode=confirm", "Confirm", "completed"),
        ("mode=confirm", "cancel", "failed"),
        ('question_type="YES/NO"', "n", "failed"),
    ],
)
def test_a_no_that_has_no_edge_stops_the_way_on(mode: str, answer: str, status: str) -> None:
    act, person = asked(f"g [shape=hexagon, {mode}]\nstart -> g -> exit", answer)
    assert act.state.status == status
    assert len(person.asked[0][0].choices) == 2


def test_a_no_takes_an_edge_for_failures() -> None:
    act, _ = asked('g [shape=hexagon, mode=yes_no]\nb [prompt=B]\nstart -> g\ng -> exit\n'
                   'g -> b [condition="outcome=fail"]\nb -> exit', "no")  # fmt: skip
    assert act.order == ["start", "g", "b", "exit"]


def test_yes_and_no_on_edges_are_choices_like_others() -> None:
    act, _ = asked('g [shape=hexagon, mode=yes_no]\nb [prompt=B]\nstart -> g\ng -> exit [label="[Y] Yes"]\n'
                   'g -> b [label="[N] No"]\nb -> exit', "no")  # fmt: skip
    assert act.order == ["start", "g", "b", "exit"]


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


def test_a_default_that_is_no_choice_is_none() -> None:
    act = Act("g [shape=hexagon, timeout=60, default_choice=nonsense]\nstart -> g\ng -> exit [label=Go]")
    act.go()
    act.clock.advance(100)
    assert act.go().status == "failed"


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


def test_a_callback_is_asked() -> None:
    assert Callback(lambda asked: asked.choices[1]).ask(question("a", "b")) == Answer("b", by="callback")
    assert Callback(lambda asked: None).ask(question("a")) is None


def test_a_queue_gives_its_answers_in_order_and_then_none() -> None:
    queue = Queue(["a", Answer("b", by="bob")])
    assert [queue.ask(question("a", "b")) for _ in range(3)] == [Answer("a", by="queue"), Answer("b", by="bob"), None]


class Terminal:
    """A pseudo-terminal: what is typed at it, and what it shows."""

    def __init__(self, typed: str = "") -> None:
        self._keyboard, line = os.openpty()
        self.given = os.fdopen(line, "r")
        self.shown = Screen()
        os.write(self._keyboard, typed.encode())

    def console(self) -> Console:
        return Console(self.given, self.shown)

    def close(self) -> None:
        self.given.close()
        os.close(self._keyboard)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal() -> Iterator[Callable[[str], Terminal]]:
    with ExitStack() as stack:

        def opened(typed: str = "") -> Terminal:
            made = Terminal(typed)
            stack.callback(made.close)
            return made

        yield opened


def test_without_a_terminal_nobody_answers(terminal: Callable[[str], Terminal]) -> None:
    assert Console(io.StringIO("a\n"), Screen()).ask(question("a")) is None
    there = terminal("a\n")
    assert Console(there.given, io.StringIO()).ask(question("a")) is None
    there.given.close()
    assert there.console().ask(question("a")) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [("a\n", "[A] Approve"), ("rev\n", "Revise"), ("what\nr\n", "Revise"), ("[A] approve\n", "[A] Approve")],
)
def test_what_is_typed_is_understood(terminal: Callable[[str], Terminal], text: str, answer: str) -> None:
    there = terminal(text)
    assert there.console().ask(question("[A] Approve", "Revise")) == Answer(answer, by="console")
    shown = there.shown.getvalue()
    assert all(part in shown for part in ("Well?", "[A] Approve", "[R] Revise"))
    assert ("none of them" in shown) == text.startswith("what")


def test_an_empty_line_is_the_default_and_nothing_without_one(terminal: Callable[[str], Terminal]) -> None:
    assert terminal("\n").console().ask(question("a", "b", default="b")) == Answer("b", by="console")
    limited = Question("r", "gate#1", "Well?", ["a"], {}, 0.05)
    assert terminal("\n").console().ask(limited) is None


def test_a_free_answer_is_taken_as_typed(terminal: Callable[[str], Terminal]) -> None:
    assert terminal("as I say\n").console().ask(question()) == Answer("as I say", by="console")


def test_a_terminal_waits_no_longer_once_the_run_is_stopping(terminal: Callable[[str], Terminal]) -> None:
    console = terminal("").console()
    console(Event("stopping", "now"))
    assert console.ask(question("a")) is None
