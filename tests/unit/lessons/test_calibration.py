"""Good lessons pass the whole loop, and each of them spoilt in one place is caught: by code, blind solve or critic."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.content.addresses import value_at
from pipeline.content.checks import CODE, CRITIC, ROWS, SOLVER, check_lesson
from pipeline.content.lesson import Lesson
from pipeline.engine.step import StepContext
from pipeline.errors import TaskRejected
from pipeline.lessons.author import write_lesson
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.prompts import load_prompts
from pipeline.llm.base import Reply, Request
from tests.checks import FAULTS, documentation
from tests.servers.lessons import critique
from tests.unit.lessons.test_checks import put

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "calibration"
GOOD = sorted(path.stem for path in FOLDER.glob("*.json"))
PROMPTS = load_prompts(Catalogue().course("mathematics", "national_5").to_json())
BY = {"code": CODE, "solver": SOLVER, "critic": CRITIC}


@cache
def good(name: str) -> Json:
    return cast(Json, json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@cache
def course(name: str) -> Json:
    return Catalogue().course(*name.split("/")).to_json()


def spoilt(fault: Mapping[str, Any]) -> Json:
    lesson: Json = copy.deepcopy(good(fault["lesson"])["lesson"])
    before = value_at(lesson, fault["at"])
    if "swap" in fault:
        old, new = fault["swap"]
        assert old in before
        value: Any = before.replace(old, new)
    else:
        value = f"{before} {fault['add']}" if "add" in fault else fault["put"]
    assert value != before
    put(lesson, fault["at"], value)
    for where, text in fault.get("also", {}).items():
        put(lesson, where, text)
    kept: Json = json.loads(
        json.dumps(lesson), object_hook=lambda part: {k: v for k, v in part.items() if v is not None}
    )
    return kept


class Loop:
    """A StepContext in which a lesson is written once and never corrected."""

    def __init__(self, case: Json, lesson: Json, fault: Mapping[str, Any]) -> None:
        self.settings = {"model": "some-model", "author": "model", "effort": None, "lessons": 1}
        self.remark = None
        self._case, self._lesson, self._fault = case, lesson, fault
        self.findings: list[str] = []

    def prompt(self, name: str) -> str:
        return PROMPTS[name]

    def pin(self, name: str) -> Any:
        return course(self._case["course"])

    def load(self, name: str) -> Any:
        entry = self._case["entry"]
        before = [{**entry, "order": order, "prerequisites": []} for order in range(1, entry["order"])]
        head = {"course_id": "course_x", "catalogue": "hash", "partial": True, "not_covered": []}
        return {**head, "lesson_count": entry["order"], "entries": [*before, entry]}

    def reject(self, request: Request) -> None:
        pass

    def ask(self, request: Request, *, instead_of: Request | None = None) -> Reply:
        said: Any = {}
        if request.label == "lesson":
            said = self._lesson
        elif request.label == "solve":
            said = {"solutions": self._solutions()}
        elif request.label == "critic":
            low = {self._fault["criterion"]: 2} if "criterion" in self._fault else {}
            said = critique(request.data["lesson"], low)
        elif request.label == "correction":
            self.findings = list(request.data["findings"])
            raise TaskRejected("stop", code="answer_not_accepted")
        return Reply(json.dumps(said), "end_turn")

    def _solutions(self) -> list[Json]:
        """What somebody who can solve them finds: the answers of the good lesson."""
        found = []
        for where, item in Lesson.model_validate(self._case["lesson"]).items():
            for n, part in enumerate(item.parts or ()):
                found.append({"question": f"{where}({'abcdef'[n]})", "answer": part.answer, "options": []})
            if item.answer:
                found.append({"question": where, "answer": item.answer, "options": []})
        known = self._fault.get("solved")
        return [known] if known else found


def run(case: Json, lesson: Json, fault: Mapping[str, Any]) -> Loop | Json:
    loop = Loop(case, lesson, fault)
    try:
        return write_lesson(cast(StepContext, loop), case["entry"]["order"])
    except TaskRejected:
        return loop


def test_the_set_is_large_enough_and_of_every_kind() -> None:
    assert len(GOOD) >= 12
    assert len(FAULTS) >= 36
    assert {fault["by"] for fault in FAULTS} == set(BY)
    assert len({fault["check"] for fault in FAULTS}) >= 20
    rows = {row.number: row.who for row in ROWS}
    assert all(BY[fault["by"]] in (rows[fault["check"]], CRITIC) for fault in FAULTS)


@pytest.mark.parametrize("name", GOOD)
def test_good_lesson_is_released(name: str) -> None:
    case = good(name)
    findings = check_lesson(case["lesson"], entry=case["entry"], course=course(case["course"]))
    assert [each.line() for each in findings if each.severity != "W"] == []
    made = run(case, case["lesson"], {})
    assert isinstance(made, dict), made.findings
    assert made["lesson"] == case["lesson"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['check']}-{fault['lesson']}-{fault['at']}")
def test_spoilt_lesson_is_caught(fault: Mapping[str, Any]) -> None:
    case, lesson = good(fault["lesson"]), spoilt(fault)
    findings = check_lesson(lesson, entry=case["entry"], course=course(case["course"]))
    caught = {each.check for each in findings if each.severity != "W"}
    if fault["by"] == "code":
        assert fault["check"] in caught, [each.line() for each in findings]
    else:
        # Code may not know; the loop sends it back all the same.
        loop = run(case, lesson, fault)
        assert isinstance(loop, Loop)
        assert loop.findings


def test_the_documentation_is_what_the_table_says() -> None:
    assert (FOLDER.parents[1] / "devops/docs/checks.md").read_text(encoding="utf-8") == documentation()


_SAID = """
import json
import os
import subprocess
import sys
from tests.unit.lessons.test_calibration import FAULTS, course, good, spoilt
from pipeline.content.checks import check_lesson, summary
for fault in FAULTS[::5]:
    case, lesson = good(fault["lesson"]), spoilt(fault)
    what = {"entry": case["entry"], "course": course(case["course"])}
    print([each.line() for each in check_lesson(lesson, **what)], json.dumps(summary(lesson, **what)))
"""


def test_findings_are_the_same_in_every_process() -> None:
    """A resumed run sends the correction it would have sent, so that its reply is found and not bought again."""
    said = [
        subprocess.run(
            [sys.executable, "-c", _SAID],
            capture_output=True,
            text=True,
            check=True,
            cwd=FOLDER.parents[1],
            env={"PYTHONHASHSEED": seed, "PATH": os.environ["PATH"]},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) >= 8
