"""One lesson from request to release: what is fed back, who is asked, when it ends."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from pipeline.engine.step import StepContext
from pipeline.errors import TaskRejected
from pipeline.lessons.author import SCHEME_AGAIN, _agreement, examine, write_lesson
from pipeline.lessons.offline import answer
from pipeline.lessons.pipeline import write_outline
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import Outline
from pipeline.llm.base import Reply, Request
from tests.checking import MATHS, course, scheme_of
from tests.servers.lessons import critique, solutions
from tests.small_lesson import LESSON, fresh

PROMPTS = load_prompts(MATHS.to_json())
OUTLINE = answer({"kind": "outline", "course": course(), "lessons": 1})
ENTRIES = scheme_of(course(), 1)
SCHEME = {
    "course_id": MATHS.course_id, "catalogue": "hash", "lesson_count": 1, "partial": True, "not_covered": [],
    "entries": ENTRIES,
}  # fmt: skip

Say = Callable[[Request], Any]


class FakeContext:
    """A StepContext that answers from a list: JSON values, texts, replies or functions of the request."""

    def __init__(self, answers: Sequence[Any], **settings: Any) -> None:
        self.settings = {"model": "some-model", "author": "model", "effort": None, "lessons": 1, **settings}
        self.asked: list[Request] = []
        self.rejected: list[str] = []
        self._answers = list(answers)
        #: What a person said when the lesson was to be made again, and the lesson as it was.
        self.remark: tuple[str, Any] | None = None

    def prompt(self, name: str) -> str:
        return PROMPTS[name]

    def pin(self, name: str) -> Any:
        return {"catalogue": course()}[name]

    def load(self, name: str) -> Any:
        return {"scheme": SCHEME}[name]

    def ask(self, request: Request, *, instead_of: Request | None = None) -> Reply:
        self.asked.append(request)
        self.rejected += [instead_of.label] if instead_of else []
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


def judge(scores: Mapping[str, int] | None = None, **more: Any) -> Say:
    return lambda request: critique(request.data["lesson"], scores, **more)


def solve(**said: str) -> Say:
    """Every answer in words that code does not compare, but for those given (c4_q1="5")."""

    def answers(request: Request) -> Any:
        made = solutions(request.data["questions"], "See the working.")
        for row in made["solutions"]:
            row["answer"] = said.get(row["question"].replace(".", "_"), row["answer"])
        return made

    return answers


def patch(path: str, text: str) -> dict[str, Any]:
    return {"patches": [{"path": path, "text": text}]}


def spoil(path: str, value: Any) -> dict[str, Any]:
    """The lesson with another value at a place: cards.3.items.0.ask."""
    lesson = fresh()
    node: Any = lesson
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in way:
        node = node[step]
    node[last] = value
    return lesson


def test_lesson_that_passes_is_asked_for_solved_and_judged_once() -> None:
    ctx = FakeContext([LESSON, solve(), judge()])
    made = write(ctx)
    assert ctx.labels == ["lesson", "solve", "critic"]
    assert (made["order"], made["schema"], made["lesson"]) == (1, 2, LESSON)
    assert made["critic"]["released"]
    assert set(made["checks"]["by"]) >= {"c1.q1", "c9.q2"}
    shown = ctx.asked[1].data["questions"]
    assert len(shown) == 13
    assert all(set(each) <= {"question", "ask", "options", "parts", "figures"} for each in shown)
    left_out = FakeContext([LESSON, judge()], blind_solve=False)
    assert "blind" not in write(left_out)["checks"]


def test_lesson_again_for_a_teacher_carries_the_former_one_and_the_wish() -> None:
    again = FakeContext([LESSON, solve(), judge()])
    again.remark = ("Use football.", {"lesson": LESSON, "order": 1, "schema": 2})
    write(again)
    first = again.asked[0]
    assert (first.data["previous"], first.data["faults"]) == (LESSON, ["A teacher asks: Use football."])
    assert "- A teacher asks: Use football." in first.messages[0].text


def test_lesson_offline_has_no_solver_no_critic_and_no_correction() -> None:
    ctx = FakeContext([LESSON], author="offline", model="offline")
    assert write(ctx)["critic"] is None
    bad = FakeContext([spoil("title", "short")], author="offline")
    with pytest.raises(TaskRejected) as caught:
        write(bad)
    assert "writes the same again" in str(caught.value.hint)
    assert "Resume" not in str(caught.value.hint)
    assert ctx.labels == bad.labels == ["lesson"]
    none = FakeContext([{"not_written": ["num.surds"]}], author="offline")
    made = write(none)
    assert (made["lesson"], made["not_written"]) == (None, ["num.surds"])


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("{not json", "the answer is no JSON object"),
        ('{"order": NaN}', "NaN is no JSON number"),
        ({"title": "A lesson without anything that pupils can read"}, "cards: is missing"),
    ],
    ids=["text", "nan", "frame"],
)
def test_reply_that_is_no_lesson_is_asked_for_once_more_as_a_whole(bad: Any, fault: str) -> None:
    ctx = FakeContext([bad, LESSON, solve(), judge()])
    assert write(ctx)["lesson"] == LESSON
    assert ctx.labels == ["lesson", "lesson", "solve", "critic"]
    assert fault in ctx.asked[1].messages[0].text
    assert ctx.rejected == ["lesson"]
    with pytest.raises(TaskRejected, match="Lesson 1 is not good enough"):
        write(FakeContext([bad, bad]))


def test_lesson_with_faults_is_corrected_in_its_places_and_nowhere_else() -> None:
    bad = spoil("title", "short")
    bad["cards"][3]["items"][0]["tests"] = ["point 9"]
    del bad["cards"][7]["items"][1]["feedback"]
    patches = {
        "patches": [
            {"path": "title", "text": LESSON["title"]},
            {"path": "c4.q1.tests", "texts": ["point 1"]},
            {"path": "c8.q2", "item": LESSON["cards"][7]["items"][1]},
            {"path": "c9.q1.ask", "text": "banana"},
        ]
    }
    ctx = FakeContext([bad, patches, solve(), judge()])
    made = write(ctx)
    assert made["lesson"] == LESSON
    assert ctx.labels == ["lesson", "correction", "solve", "critic"]
    request = ctx.asked[1]
    assert [line.split(": ")[0] for line in request.data["findings"]] == ["title", "c8.q2.feedback", "c4.q1.tests"]
    # What may be changed, and the lists that numbers point to.
    assert set(request.data["present"]) == {"prior", "key_points", "misconceptions", "title", "c8.q2", "c4.q1"}
    assert [row["where"] for row in made["checks"]["warnings"]] == ["c9.q1.ask"]


def test_question_that_fails_twice_is_only_taken_as_a_whole() -> None:
    bad = spoil("cards.3.items.0.tests", ["point 9"])
    part = {"patches": [{"path": "c4.q1.tests", "texts": ["point 1"]}]}
    wrong = {"patches": [{"path": "c4.q1.tests", "texts": ["point 8"]}]}
    whole = {"patches": [{"path": "c4.q1", "item": LESSON["cards"][3]["items"][0]}]}
    ctx = FakeContext([bad, wrong, part, whole, solve(), judge()])
    assert write(ctx)["lesson"] == LESSON
    assert ctx.labels == ["lesson", *["correction"] * 3, "solve", "critic"]
    assert [request.data["whole"] for request in ctx.asked[1:4]] == [[], ["c4.q1"], ["c4.q1"]]


def test_question_is_still_put_right_in_part_where_a_correction_could_not_be_read() -> None:
    bad = spoil("cards.3.items.0.tests", ["point 9"])
    part = {"patches": [{"path": "c4.q1.tests", "texts": ["point 1"]}]}
    ctx = FakeContext([bad, "{not json", part, solve(), judge()])
    assert write(ctx)["lesson"] == LESSON
    assert [request.data["whole"] for request in ctx.asked[1:3]] == [[], []]


def test_card_too_many_is_taken_away_as_the_prompt_says() -> None:
    bad = fresh()
    bad["cards"] += [LESSON["cards"][-1]] * (14 - len(bad["cards"]))
    away = [{"path": f"c{place}", "text": ""} for place in range(len(LESSON["cards"]) + 1, 15)]
    ctx = FakeContext([bad, {"patches": away}, solve(), judge()])
    assert write(ctx)["lesson"] == LESSON
    assert "or a whole card away" in str(ctx.asked[1].messages)


def test_lesson_is_rejected_after_the_last_correction_and_says_why() -> None:
    ctx = FakeContext([spoil("title", "short"), *[patch("title", "brief")] * 9])
    with pytest.raises(TaskRejected, match="Lesson 1 is not good enough: title: 'brief'") as caught:
        write(ctx)
    assert ctx.labels == ["lesson", *["correction"] * 3]
    assert caught.value.data["faults"]
    ctx = FakeContext([Reply("", "refusal"), LESSON])
    with pytest.raises(TaskRejected, match="declined to write lesson 1"):
        write(ctx)
    assert ctx.left == 1


def test_answer_that_a_blind_solution_contradicts_goes_back_with_both_and_fails_the_second_time() -> None:
    other = solve(c4_q1=r"\(3\sqrt{2}\)", c4_q2="3√5")
    item = {**LESSON["cards"][3]["items"][0], "ask": r"Write \(\sqrt{12}\) as a surd in its simplest form."}
    corrected = {"patches": [{"path": "c4.q1", "item": item}]}
    ctx = FakeContext([LESSON, other, corrected, solve(c4_q1=r"\(2\sqrt{3}\)"), judge()])
    made = write(ctx)
    assert ctx.labels == ["lesson", "solve", "correction", "solve", "critic"]
    (said,) = ctx.asked[2].data["findings"]
    assert said.startswith(r"c4.q1: the lesson's answer is \(2\sqrt{3}\); somebody who saw only the question found \(3")
    # Only what has changed is solved again.
    assert [row["question"] for row in ctx.asked[3].data["questions"]] == ["c4.q1"]
    assert made["checks"]["blind"] == {"c4.q1": "agreed", "c4.q2": "agreed"}
    with pytest.raises(TaskRejected, match=r"Lesson 1 is not good enough: c4\.q1: the lesson's"):
        write(FakeContext([LESSON, other, corrected, other]))
    ctx = FakeContext([LESSON, "no solutions", solve(), judge()])
    write(ctx)
    assert (ctx.labels, ctx.rejected) == (["lesson", "solve", "solve", "critic"], ["solve"])
    lacks = solve(c4_q1="Cannot be answered: the length is missing.")
    ctx = FakeContext([LESSON, lacks, corrected, solve(), judge()])
    write(ctx)
    assert ctx.labels[2] == "correction"


def test_critic_is_told_of_answers_in_words_only_where_there_are_some() -> None:
    assert _agreement(19, 19).endswith("the lesson's answer in all 19 of them.")
    assert _agreement(17, 19).endswith(
        "17 of 19 questions whose answers code can compare; the others are answers in words or read from a drawing."
    )


def test_lesson_with_low_scores_is_corrected_where_the_critic_says() -> None:
    better = patch("c1.title", "Square numbers and products")
    ctx = FakeContext([LESSON, solve(), judge({"F2": 3}), better, judge()])
    made = write(ctx)
    # What was solved as it stands is not solved again.
    assert ctx.labels == ["lesson", "solve", "critic", "correction", "critic"]
    assert ctx.asked[3].data["findings"] == [
        "c1: F2 (within scope) has 3 of 5: Steps are missing.; wanted Explain it in smaller steps."
    ]
    assert made["lesson"]["cards"][0]["title"] == "Square numbers and products"
    # The critic sees neither earlier versions nor scores.
    assert set(ctx.asked[4].data) == {"kind", "course", "entry", "lesson", "facts"}


def test_lesson_that_a_correction_left_as_it_was_is_not_solved_or_judged_again() -> None:
    """Nothing of it has changed, so its solutions and its form were paid for already."""
    better = patch("c1.title", "Square numbers and products")
    elsewhere = patch("c3.title", "Another title that nobody asked for")
    ctx = FakeContext([LESSON, solve(), judge({"F2": 3}), "no patches", elsewhere, better, judge()])
    assert write(ctx)["critic"]["released"]
    assert ctx.labels == ["lesson", "solve", "critic", "correction", "correction", "correction", "critic"]
    differs = solve(c4_q1=r"\(3\sqrt{2}\)")
    item = {**LESSON["cards"][3]["items"][0], "ask": r"Write \(\sqrt{12}\) as a surd in its simplest form."}
    whole = {"patches": [{"path": "c4.q1", "item": item}]}
    ctx = FakeContext([LESSON, differs, "no patches", whole, solve(), judge()])
    assert write(ctx)["critic"]["released"]
    assert ctx.labels == ["lesson", "solve", "correction", "correction", "solve", "critic"]


def test_critic_form_that_cannot_be_used_is_asked_for_once_more_with_what_was_void() -> None:
    ctx = FakeContext([LESSON, solve(), "no form", judge()])
    assert write(ctx)["critic"]["released"]
    assert ctx.rejected == ["critic"]
    assert ctx.labels == ["lesson", "solve", "critic", "critic"]
    with pytest.raises(TaskRejected, match="The critic of lesson 1 is not good enough: the answer is no JSON"):
        write(FakeContext([LESSON, solve(), "no form", "no form"]))
    invented = judge(quotation="words nobody wrote here")
    ctx = FakeContext([LESSON, solve(), invented, judge()])
    assert write(ctx)["critic"]["released"]
    second = ctx.asked[3]
    assert second.data["former"] == critique(LESSON, quotation="words nobody wrote here")
    assert "F1: the lesson does not say 'words nobody wrote here'" in second.messages[0].text
    with pytest.raises(TaskRejected, match="F1: the lesson does not say"):
        write(FakeContext([LESSON, solve(), invented, invented]))


def test_outline_that_breaks_a_rule_goes_back_until_it_keeps_them() -> None:
    bad = copy.deepcopy(OUTLINE)
    bad["entries"][0]["points"] = ["num.surds.1"]
    ctx = FakeContext([bad, OUTLINE])
    assert write_outline(cast(StepContext, ctx), None) == OUTLINE
    assert ctx.labels == ["outline", "outline"]
    assert any("no teach lesson teaches num.surds.2" in line for line in ctx.asked[1].data["faults"])
    ctx = FakeContext([bad] * 9)
    with pytest.raises(TaskRejected, match="The outline is not good enough: no teach lesson teaches num") as caught:
        write_outline(cast(StepContext, ctx), None)
    # There is no other lesson yet that could be kept.
    assert (len(ctx.asked), caught.value.hint) == (4, SCHEME_AGAIN)


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
    ctx = FakeContext([wrappings(LESSON)[7], solve(), lambda request: wrappings(judge()(request))[-1]])
    assert write(ctx)["lesson"] == LESSON
    assert ctx.labels == ["lesson", "solve", "critic"]
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
