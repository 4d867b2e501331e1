"""The example course: what its critic sees, and that it is corrected until the critic is content."""

from __future__ import annotations

from pathlib import Path

from pipeline.formats.attractor.handlers.interviewers import AutoApprove
from pipeline.llm.base import Request
from tests.unit.formats.acting import Act, said, turns

COURSE = Path(__file__).parents[3] / "devops/docs/examples/course.dot"


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
