"""One lesson from request to release: what is fed back, who is asked, when it ends."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from pipeline.engine.step import StepContext
from pipeline.errors import TaskRejected
from pipeline.lessons.author import examine, write_lesson
from pipeline.lessons.offline import answer
from pipeline.lessons.pipeline import write_outline
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import Outline
from pipeline.llm.base import Reply, Request
from tests.checking import MATHS, course, lesson_of, scheme_of
from tests.servers.lessons import critique

PROMPTS = load_prompts()
OUTLINE = answer({"kind": "outline", "course": course(), "lessons": 1})
ENTRIES = scheme_of(course(), 1)
SCHEME = {
    "course_id": MATHS.course_id, "catalogue": "hash", "lesson_count": 1, "partial": True, "not_covered": [],
    "entries": ENTRIES,
}  # fmt: skip
LESSON = lesson_of(course(), ENTRIES, 1)

Say = Callable[[Request], Any]


class FakeContext:
    """A StepContext that answers from a list: JSON values, texts, replies or functions of the request."""

    def __init__(self, answers: Sequence[Any], **settings: Any) -> None:
        self.settings = {"model": "some-model", "author": "model", "effort": None, "lessons": 1, **settings}
        self.asked: list[Request] = []
        self._answers = list(answers)
        #: What a person said when the lesson was to be made again, and the lesson as it was.
        self.remark: tuple[str, Any] | None = None

    def prompt(self, name: str) -> str:
        return PROMPTS[name]

    def pin(self, name: str) -> Any:
        return {"catalogue": course()}[name]

    def load(self, name: str) -> Any:
        return {"scheme": SCHEME}[name]

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        said = self._answers.pop(0)
        said = said(request) if callable(said) else said
        if isinstance(said, Reply):
            return said
        return Reply(said if isinstance(said, str) else json.dumps(said), "end_turn")

    @property
    def labels(self) -> list[str]:
        return [request.label for request in self.asked]

    @property
    def left(self) -> int:
        return len(self._answers)


def write(ctx: FakeContext) -> dict[str, Any]:
    return write_lesson(cast(StepContext, ctx), 1)


def judge(scores: Mapping[str, int] | None = None, **more: str) -> Say:
    return lambda request: critique(request.data["lesson"], scores, **more)


def spoil(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(LESSON), **fields}


def test_lesson_that_passes_is_asked_for_once_and_judged_once() -> None:
    ctx = FakeContext([LESSON, judge()])
    made = write(ctx)
    assert ctx.labels == ["lesson", "critic"]
    assert (made["order"], made["lesson"], made["critic"]["released"]) == (1, LESSON, True)
    assert made["checks"]["questions"] == made["checks"]["answers_recomputed"] + made["checks"]["needs_human"]
    again = FakeContext([LESSON, judge()])
    again.remark = ("Use football.", {"lesson": LESSON, "order": 1})
    write(again)
    first = again.asked[0]
    assert (first.data["previous"], first.data["faults"]) == (LESSON, ["A teacher asks: Use football."])
    assert "- A teacher asks: Use football." in first.messages[0].text
    assert first.hash() != ctx.asked[0].hash()


def test_lesson_offline_has_no_critic_and_no_revision() -> None:
    ctx = FakeContext([LESSON], author="offline", model="offline")
    assert write(ctx)["critic"] is None
    bad = FakeContext([spoil(title="short")], author="offline")
    with pytest.raises(TaskRejected):
        write(bad)
    assert ctx.labels == bad.labels == ["lesson"]


def lesson_with(value: str, expression: str) -> dict[str, Any]:
    """A lesson whose practice begins with this calculation; its question has the numbers 12 and 15."""
    bad = copy.deepcopy(LESSON)
    item = next(card for card in bad["cards"] if card["kind"] == "guided_practice")["items"][0]
    item["stem"] = "Work out the number of square tiles on a floor of 12 by 15 tiles."
    item["answer"] = {
        "kind": "numeric", "expression": expression, "rounding": {"kind": "exact", "amount": 0}, "value": value,
        "unit": "", "tolerance": "0", "wrong": [], "shown": value,
    }  # fmt: skip
    return bad


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("{not json", "the answer is no JSON object"),
        ('{"order": NaN}', "NaN is no JSON number"),
        (spoil(title="short"), "title: String should have at least 30 characters"),
        (spoil(invented=1), "invented: Extra inputs are not permitted"),
        (spoil(minutes=51), "minutes: 51, wanted 50 as in the entry"),
        (spoil(outcome_refs=["stat.compare"]), "outcome_refs: ['stat.compare'], wanted ['num.surds']"),
        (lesson_with("170", "12*15"), "170, but the expression gives 180"),
        # A fault that asks for a revision, not one that blocks.
        (lesson_with("391", "12*15 + 211"), "211 not in the question"),
    ],
    ids=["text", "nan", "length", "extra", "entry", "refs", "key", "stranger"],
)
def test_lesson_with_a_fault_goes_back_to_its_author_and_never_to_the_critic(bad: Any, fault: str) -> None:
    ctx = FakeContext([bad, LESSON, judge()])
    assert write(ctx)["lesson"] == LESSON
    assert ctx.labels == ["lesson", "lesson", "critic"]
    assert any(fault in line for line in ctx.asked[1].data["faults"]), ctx.asked[1].data["faults"]
    assert ctx.asked[1].data["previous"] == (None if isinstance(bad, str) else bad)
    assert fault in ctx.asked[1].messages[0].text


def test_lesson_with_low_scores_is_revised_with_the_fixes_whatever_the_critic_says() -> None:
    ctx = FakeContext([LESSON, judge({"F2": 2}, verdict="release"), LESSON, judge(verdict="revise")])
    made = write(ctx)
    assert ctx.labels == ["lesson", "critic", "lesson", "critic"]
    assert any(line.startswith("F2 (within scope), at") for line in ctx.asked[2].data["faults"])
    assert ctx.asked[2].data["previous"] == LESSON
    assert made["critic"]["model_verdict"] == "revise"
    assert made["critic"]["notes"]
    # The critic sees neither earlier versions nor scores.
    first, second = ctx.asked[1], ctx.asked[3]
    assert first.hash() == second.hash()
    assert set(second.data) == {"kind", "course", "entry", "lesson", "checks"}


def test_lesson_is_rejected_after_three_revisions_and_says_why() -> None:
    ctx = FakeContext([spoil(title="short")] * 9)
    with pytest.raises(TaskRejected, match="Lesson 1 is not good enough: title: String should have") as caught:
        write(ctx)
    assert len(ctx.asked) == 4
    assert caught.value.data["faults"]
    ctx = FakeContext([LESSON, judge({"Q1": 1})] * 9)
    with pytest.raises(TaskRejected, match=r"Q1 \(clear explanation in small steps\) has 1 of 5"):
        write(ctx)
    assert ctx.labels == ["lesson", "critic"] * 4
    ctx = FakeContext([Reply("", "refusal"), LESSON])
    with pytest.raises(TaskRejected, match="declined to write lesson 1"):
        write(ctx)
    assert ctx.left == 1


def test_critic_form_that_cannot_be_used_is_asked_for_once_more_and_then_not_believed() -> None:
    ctx = FakeContext([LESSON, "no form", judge()])
    assert write(ctx)["critic"]["released"]
    assert ctx.labels == ["lesson", "critic", "critic"]
    assert ctx.asked[1].hash() != ctx.asked[2].hash()
    ctx = FakeContext([LESSON, "no form", "no form"])
    with pytest.raises(TaskRejected, match="The critic of lesson 1 is not good enough: the answer is no JSON"):
        write(ctx)
    ctx = FakeContext([LESSON, judge(quotation="words nobody wrote here"), judge()])
    assert write(ctx)["critic"]["released"]
    assert ctx.labels == ["lesson", "critic", "critic"]
    invented = judge(quotation="words nobody wrote here")
    ctx = FakeContext([LESSON, invented, invented] * 4)
    with pytest.raises(TaskRejected, match="F1 has no score"):
        write(ctx)


def test_outline_that_breaks_a_rule_goes_back_until_it_keeps_them() -> None:
    bad = copy.deepcopy(OUTLINE)
    bad["entries"][0]["points"] = ["num.surds.1"]
    ctx = FakeContext([bad, OUTLINE])
    assert write_outline(cast(StepContext, ctx), None) == OUTLINE
    assert ctx.labels == ["outline", "outline"]
    assert any("no teach lesson teaches num.surds.2" in line for line in ctx.asked[1].data["faults"])
    ctx = FakeContext([bad] * 9)
    with pytest.raises(TaskRejected, match="The outline is not good enough: no teach lesson teaches num"):
        write_outline(cast(StepContext, ctx), None)
    assert len(ctx.asked) == 4


def wrappings(value: Any) -> list[str]:
    """A value as a whole reply that holds nothing else, in the forms that models give it."""
    plain, pretty = json.dumps(value), json.dumps(value, indent=2)
    return [
        "\ufeff" + plain,
        f"\n ```json\n{pretty}\n```\n",
        f"```\n{plain}\n```",
        f"~~~~JSON\r\n{plain}\r\n~~~~",
        f"```json\n{plain}",
        f"\ufeff```json {plain}```",
        f"```json\n\ufeff{plain}\n```",
        f"Here is the lesson:\n\n```json title\n{pretty}\n```\n\nTell me what to change.",
        json.dumps({"output": value}),
        json.dumps([value]),
        json.dumps({"result": [{"lesson": value}]}),
        json.dumps(plain),
        f"```json\n{json.dumps({'answer': plain})}\n```",
    ]


def test_reply_that_is_wrapped_as_a_whole_is_unwrapped() -> None:
    ctx = FakeContext([wrappings(LESSON)[7], lambda request: wrappings(judge()(request))[-1]])
    assert write(ctx)["lesson"] == LESSON
    assert ctx.labels == ["lesson", "critic"]
    for text in wrappings(OUTLINE):
        assert examine(text, Outline).raw == OUTLINE


def test_reply_that_holds_more_than_one_answer_is_not_guessed_at() -> None:
    for text in (
        json.dumps([OUTLINE, OUTLINE]),
        json.dumps({"first": OUTLINE, "second": OUTLINE}),
        f"```json\n{json.dumps(OUTLINE)}\n```\nor\n```json\n{json.dumps(OUTLINE)}\n```",
        json.dumps({"entries": {"entries": OUTLINE["entries"]}}),
        "[[[[[[[[]]]]]]]]",
        '"' * 3,
    ):
        assert examine(text, Outline).value is None, text[:60]
