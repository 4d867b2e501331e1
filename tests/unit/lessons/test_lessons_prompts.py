"""Prompts: strict templates, numbers that are those of the schemas, the shared prefix first."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel

from pipeline.content.addresses import steps_of
from pipeline.content.checks import ROWS, check_lesson
from pipeline.content.fields import MATHS_COMMANDS, MAX_OPTIONAL, Words, wire_schema
from pipeline.content.lesson import AuthorReply, Corrections, Lesson, Solutions
from pipeline.content.shape import rules
from pipeline.errors import ConfigError
from pipeline.frameworks import REGIONS
from pipeline.lessons import prompts
from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.estimate import estimate
from pipeline.lessons.plan import make_plan
from pipeline.lessons.prompts import PLACEHOLDERS, load_prompts, render
from pipeline.lessons.release import RULE
from pipeline.lessons.schemas import CRITERIA, Critique, Entry, EntryDetails, Outline
from pipeline.llm.base import Request
from pipeline.publish.mathml import check
from tests.checking import MATHS, course, scheme_of
from tests.small_lesson import fresh

PROMPTS = load_prompts(MATHS.to_json())
ALL_MODELS = {
    "author": prompts.LESSON_MODELS,
    "outline": prompts.OUTLINE_MODELS,
    "entry": prompts.ENTRY_MODELS,
    "reviewer": prompts.CRITIC_MODELS,
}
SCHEME = [Entry.model_validate(entry) for entry in scheme_of(course(), 3)]
EIGHTEEN = estimate(Asks(MATHS, PROMPTS, "some-model", "low"), 18)


def requests(label: str) -> list[Request]:
    return [request for request in EIGHTEEN.requests if request.label == label]


@pytest.mark.parametrize(
    ("prompt", "model"), [("author", Lesson), ("outline", Outline), ("entry", EntryDetails), ("reviewer", Critique)]
)
def test_prompt_describes_every_part_of_its_schema_with_its_numbers(prompt: str, model: type[BaseModel]) -> None:
    parts = model.model_json_schema().get("$defs", {}).items()
    reached = {name for name, node in parts if node.get("type") == "object"} | {model.__name__}
    assert {item.__name__ for item in ALL_MODELS[prompt]} == reached
    for part in ALL_MODELS[prompt]:
        block = PROMPTS[prompt].split(f"{part.__name__}: ")[1].split("\n\n")[0]
        lines = {line[2:].split(":")[0]: line for line in block.splitlines() if line.startswith("- ")}
        for name, info in part.model_fields.items():
            wanted = [str(number) for rule in info.metadata for number in _numbers(rule)]
            assert [number for number in wanted if number not in lines[name]] == [], (part.__name__, name)
            said = (info.description or "").replace("natural setting", "natural Scottish setting")
            assert not said or said in lines[name]


def _numbers(rule: Any) -> list[Any]:
    if isinstance(rule, Words):
        return [rule.low, rule.high]
    if isinstance(rule, MaxLen):
        return [rule.max_length]
    if isinstance(rule, MinLen):
        return [rule.min_length] if rule.min_length else []
    if isinstance(rule, Ge | Le):
        return [rule.ge if isinstance(rule, Ge) else rule.le]
    return []


def test_prompts_state_every_rule_that_can_send_a_lesson_back() -> None:
    usage = REGIONS["scotland"].rule
    stated = {
        row.number: [row.rule.replace("[[rule_of_usage]]", usage)]
        for row in ROWS
        if row.check is not None and row.severity != "W"
    }
    # Shape says its rules itself; the solver's and the critic's are what they are asked.
    stated |= {1: rules(), 2: ["Targets, in tests:"], 7: ["solves every item"]}
    stated[3] += ["every point of the task is taught"]
    stated[25] += ['An item of the starter tests "prior n"']
    stated |= {10: ["Q4: distractors"], 21: ["F5: facts right"], 29: ["Q3: misconceptions"]}
    assert {row.number for row in ROWS if row.severity != "W"} <= stated.keys()
    for number, sentences in stated.items():
        assert all(text and text in PROMPTS["author"] for text in sentences), number
    assert RULE in PROMPTS["reviewer"]
    for key in CRITERIA:
        anchor = next(line for line in PROMPTS["reviewer"].splitlines() if line.startswith(f"{key}. "))
        assert all(f"{score}: " in anchor for score in (5, 3, 1))
    assert set(PROMPTS) == set(PLACEHOLDERS)
    assert not any("[[" in text for text in PROMPTS.values())


def test_each_subject_has_examples_of_its_own() -> None:
    shown = {}
    for subject in ("physics", "chemistry", "mathematics", "computing_science", "history"):
        asks = Asks(MATHS.model_copy(update={"subject": subject}), PROMPTS, "some-model")
        shown[subject] = asks.lesson(SCHEME, 1).system[0].text
    assert "CH₄ + 2O₂ → CO₂ + 2H₂O" in shown["chemistry"]
    assert "gram formula mass" in shown["physics"]
    assert "the binary number 1011" in shown["computing_science"]
    assert "primary source" in shown["history"]
    assert all("rational denominator, in its" in text for name, text in shown.items() if name == "mathematics")
    assert not [
        name for name, text in shown.items() if name != "mathematics" and "rational denominator, in its" in text
    ]
    # Runs that began with an author prompt that held its examples go on with it.
    old = {**PROMPTS, "author": PROMPTS["author"].replace("{{examples}}", "as it was")}
    assert "as it was" in Asks(MATHS, old, "some-model").lesson(SCHEME, 1).system[0].text


@pytest.mark.parametrize("name", [name for name in PLACEHOLDERS if name.startswith("examples_")])
def test_examples_in_the_prompts_are_items_that_pass_the_checks(name: str) -> None:
    """One of each kind, checked in the place of the first practice items of a good lesson."""
    lines = [line for line in PROMPTS[name].splitlines() if line.startswith('{"')]
    items = [json.loads(line) for line in lines]
    assert {next(name for name in ("answer", "options", "parts") if name in item) for item in items} == {
        "answer", "options", "parts",
    }  # fmt: skip
    entry = {**scheme_of(course(), 1)[0], "points": [f"p{number}" for number in range(1, 5)]}
    for item in items:
        lesson = fresh()
        lesson["misconceptions"] *= 2
        lesson["cards"][7]["items"].append(item)
        found = check_lesson(lesson, entry=entry, course=course())
        assert [each for each in found if each.where.startswith("c8.q5") and each.severity != "W"] == [], item["ask"]


def test_maths_commands_offered_to_authors_can_be_set() -> None:
    forms = {
        "frac": r"\frac{1}{2}", "sqrt": r"\sqrt[3]{2}", "left": r"\left( x \right)", "right": r"\left( x \right)",
        "begin": r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "end": r"\begin{pmatrix} 1 & 2 \end{pmatrix}",
        "\\": r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "{": r"\{ 1 \}", "}": r"\{ 1 \}", "circ": r"30^\circ",
        "vec": r"\vec{a}", "bar": r"\bar{x}", "overrightarrow": r"\overrightarrow{AB}", "text": r"\text{cm}",
        "mathrm": r"\mathrm{cm}", "quad": r"a \quad b", ",": r"3\,x",
    }  # fmt: skip
    assert [name for name in MATHS_COMMANDS if check("\\(" + forms.get(name, f"x \\{name} y") + "\\)")] == []


def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(prompts.__file__).with_name("prompts"), tmp_path / "prompts"))


def test_prompt_file_that_is_missing_unknown_or_has_a_wrong_placeholder_is_an_error(tmp_path: Path) -> None:
    here = folder(tmp_path)
    for text, said in (
        ("{{faults}} {{ordre}}", "prompt revision: placeholders missing or unknown: ordre"),
        ("nothing", "prompt revision: placeholders missing or unknown: faults"),
        ("{{faults}} [[tabel]]", "prompt revision: unknown placeholder tabel"),
    ):
        (here / "revision.md").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=said):
            load_prompts(MATHS.to_json(), here)
    (here / "author.md").rename(here / "auther.md")
    with pytest.raises(ConfigError, match="missing or unknown: auther, author"):
        load_prompts(MATHS.to_json(), here)


def test_render_refuses_a_missing_and_an_unused_value_and_leaves_values_alone() -> None:
    with pytest.raises(ConfigError, match="unknown placeholder order"):
        render("judge", "{{order}}", {})
    with pytest.raises(ConfigError, match="no placeholder for name"):
        render("judge", "{{order}}", {"order": "1", "name": "x"})
    value = r"{{other}} \1 [[x]]"
    assert render("judge", "{{order}} ok", {"order": value}) == f"{value} ok"


def test_every_request_ends_with_its_data_and_says_what_it_is() -> None:
    found = EIGHTEEN.requests
    assert {request.label for request in found} == {"outline", "entry", "lesson", "correction", "solve", "critic"}
    for request in found:
        text = request.messages[-1].text
        assert text.endswith("\n</task_data>")
        body = text.rsplit("<task_data>\n", 1)[1].removesuffix("\n</task_data>")
        shared = {"course", "facts", "findings", "whole", *(["entries"] if request.label == "entry" else [])}
        assert json.loads(body) == {key: value for key, value in request.data.items() if key not in shared}
        assert request.data["kind"] == request.label
        assert (request.model, request.effort) == ("some-model", "low")
        assert "{{" not in text.split("<task_data>")[0]


def test_requests_of_a_kind_share_one_cached_prefix() -> None:
    lessons, entries = requests("lesson"), requests("entry")
    assert len(lessons) == 5
    assert len({request.system for request in lessons}) == len({request.system for request in entries}) == 1
    assert all(part.cache for part in (*lessons[0].system, *entries[0].system))
    # Corrections are asked for in the lessons' form: what comes before the last mark is the same, byte for byte.
    prefixes = {json.dumps([one.schema, one.system[0].text]) for one in (*lessons, *requests("correction"))}
    assert len(prefixes) == 1
    assert "num.surds.1" in lessons[0].system[0].text
    # The outline stands there once.
    body = entries[0].system[-1].text.split("<task_data>\n", 1)[1].split("\n</task_data>", 1)[0]
    assert json.loads(body) == {"entries": entries[0].data["entries"]}
    assert len(json.loads(body)["entries"]) == 18


def test_revision_carries_the_answer_and_the_faults_and_is_another_request() -> None:
    asks, plan = Asks(MATHS, PROMPTS, "m"), make_plan(MATHS, 3)
    first = asks.outline(plan)
    again = asks.outline(plan, Draft({"entries": []}, ["entries: 0 lessons, wanted 3"]))
    assert again.data["previous"] == {"entries": []}
    assert "- entries: 0 lessons, wanted 3" in again.messages[0].text
    assert first.hash() != again.hash()
    assert (first.data["previous"], first.data["faults"]) == (None, [])


@pytest.mark.parametrize("model", [Lesson, Corrections, AuthorReply, Solutions, Outline, EntryDetails, Critique])
def test_wire_schema_has_names_enums_and_nesting_but_no_lengths(model: type[BaseModel]) -> None:
    text = json.dumps(wire_schema(model))
    for word in ("minLength", "maxLength", "minItems", "maxItems", "pattern", "minimum", "oneOf", "default", "const"):
        assert f'"{word}":' not in text
    assert '"description": "' not in text

    optional: list[int] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert set(node["required"]) <= set(node["properties"])
                optional.append(len(node["properties"]) - len(node["required"]))
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(wire_schema(model))
    assert sum(optional) <= MAX_OPTIONAL
    assert '"null"' not in text
    assert not _is_recursive(wire_schema(model).get("$defs", {}))
    # A field may be named like a word of schemas.
    assert "title" in wire_schema(Lesson)["properties"]
    item = wire_schema(Lesson)["$defs"]["Item"]
    assert item["properties"]["answer"] == {"type": "string"}
    assert item["required"] == ["tests", "working", "marks", "feedback", "ask"]


def _is_recursive(parts: Any) -> bool:
    """Whether a part of a schema holds itself, in a part of a part or deeper."""
    inside = {name: set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(node))) for name, node in parts.items()}
    for _ in inside:
        inside = {name: within.union(*(inside[each] for each in within)) for name, within in inside.items()}
    return any(name in within for name, within in inside.items())


def test_estimate_counts_calls_and_holds_the_largest_request() -> None:
    rows = EIGHTEEN.rows
    assert [(row.label, row.most_calls) for row in rows] == [
        ("outline", 4), ("entry", 72), ("lesson", 34), ("lesson", 2), ("correction", 54), ("solve", 144),
        ("critic", 144),
    ]  # fmt: skip
    for row in rows:
        sizes = [r.size() for r in requests(row.label) if r.max_tokens == row.max_tokens]
        assert sizes
        assert row.most_bytes >= max(sizes)
        assert 0 < row.output_tokens < row.max_tokens


def test_prompts_say_how_lines_of_figures_are_addressed_and_what_a_wrong_method_gives() -> None:
    name = "c4.q2.figures.1.lines.1"
    assert name in PROMPTS["correction"]
    assert steps_of(name) == ("cards", 3, "items", 1, "figures", 0, "lines", 0)
    assert "which is another than the answer's" in PROMPTS["author"]
