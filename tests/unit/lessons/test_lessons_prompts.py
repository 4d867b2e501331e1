"""Prompts: strict templates, numbers that are those of the schemas, the shared prefix first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel

from pipeline.errors import ConfigError
from pipeline.lessons import prompts
from pipeline.lessons.asks import Asks, Draft, without_empty
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.estimate import estimate
from pipeline.lessons.fields import MATHS_COMMANDS, Words, wire_schema
from pipeline.lessons.plan import make_plan
from pipeline.lessons.prompts import PLACEHOLDERS, load_prompts, render
from pipeline.lessons.schemas import CRITERIA, Critique, Entry, EntryDetails, Lesson, Outline
from pipeline.lessons.shape import ITEMS
from pipeline.publish.mathml import check

PROMPTS = load_prompts()
ALL_MODELS = {
    "lesson": (*prompts.LESSON_MODELS, *prompts.ANSWER_MODELS),
    "outline": prompts.OUTLINE_MODELS,
    "entry": prompts.ENTRY_MODELS,
    "critic": prompts.CRITIC_MODELS,
}
MATHS = Catalogue().course("maths", "n5")
EIGHTEEN = estimate(Asks(MATHS, PROMPTS, "some-model", "low"), 18)


def reached(model: type[BaseModel]) -> set[str]:
    """Names of all object schemas below a model."""
    schema = model.model_json_schema()
    return {name for name, node in schema.get("$defs", {}).items() if node.get("type") == "object"} | {model.__name__}


@pytest.mark.parametrize(
    ("prompt", "model"), [("lesson", Lesson), ("outline", Outline), ("entry", EntryDetails), ("critic", Critique)]
)
def test_prompt_describes_every_part_of_its_schema(prompt: str, model: type[BaseModel]) -> None:
    assert {item.__name__ for item in ALL_MODELS[prompt]} == reached(model)


@pytest.mark.parametrize(("prompt", "model"), [(name, model) for name, group in ALL_MODELS.items() for model in group])
def test_prompt_numbers_are_those_of_the_schema(prompt: str, model: type[BaseModel]) -> None:
    block = PROMPTS[prompt].split(f"{model.__name__}: ")[1].split("\n\n")[0]
    lines = {line[2:].split(":")[0]: line for line in block.splitlines() if line.startswith("- ")}
    for name, info in model.model_fields.items():
        for rule in info.metadata:
            for number in _numbers(rule):
                assert str(number) in lines[name], (model.__name__, name, number)
        if info.description:
            assert info.description in lines[name]


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


def test_prompt_of_the_lesson_says_how_many_items_each_card_has() -> None:
    for kind, (low, high) in ITEMS.items():
        assert f"A {kind} card has {low} to {high} items." in PROMPTS["lesson"]


def test_prompt_of_the_critic_has_an_anchor_for_each_criterion() -> None:
    for key in CRITERIA:
        anchor = next(line for line in PROMPTS["critic"].splitlines() if line.startswith(f"{key}. "))
        assert all(f"{score}: " in anchor for score in (5, 3, 1))


def test_prompt_examples_of_maths_can_be_set() -> None:
    shown = PROMPTS["lesson"].split("easily written badly")[1].split("Fields")[0]
    assert "\\(" in shown
    assert check(shown) == []


@pytest.mark.parametrize("name", sorted(MATHS_COMMANDS))
def test_maths_command_offered_to_authors_can_be_set(name: str) -> None:
    forms = {
        "frac": r"\frac{1}{2}", "sqrt": r"\sqrt[3]{2}", "left": r"\left( x \right)", "right": r"\left( x \right)",
        "begin": r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "end": r"\begin{pmatrix} 1 & 2 \end{pmatrix}",
        "\\": r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "{": r"\{ 1 \}", "}": r"\{ 1 \}", "circ": r"30^\circ",
        "vec": r"\vec{a}", "bar": r"\bar{x}", "overrightarrow": r"\overrightarrow{AB}", "text": r"\text{cm}",
        "mathrm": r"\mathrm{cm}", "quad": r"a \quad b", ",": r"3\,x",
    }  # fmt: skip
    form = forms.get(name, "x \\" + name + " y")
    assert check("\\(" + form + "\\)") == []


def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(prompts.__file__).with_name("prompts"), tmp_path / "prompts"))


def test_prompt_file_missing_or_unknown_is_an_error(tmp_path: Path) -> None:
    here = folder(tmp_path)
    (here / "lesson.md").rename(here / "lessen.md")
    with pytest.raises(ConfigError, match="missing or unknown: lessen, lesson"):
        load_prompts(here)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{order}} {{ordre}}", "prompt judge: placeholders missing or unknown: ordre"),
        ("nothing", "prompt judge: placeholders missing or unknown: order"),
        ("{{order}} [[tabel]]", "prompt judge: unknown placeholder tabel"),
    ],
)
def test_prompt_with_a_wrong_placeholder_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    here = folder(tmp_path)
    (here / "judge.md").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_prompts(here)


def test_render_refuses_a_missing_and_an_unused_value() -> None:
    with pytest.raises(ConfigError, match="unknown placeholder order"):
        render("judge", "{{order}}", {})
    with pytest.raises(ConfigError, match="no placeholder for name"):
        render("judge", "{{order}}", {"order": "1", "name": "x"})


def test_render_leaves_values_alone_that_look_like_placeholders() -> None:
    assert render("judge", "{{order}} ok", {"order": r"{{other}} \1 [[x]]"}) == r"{{other}} \1 [[x]] ok"


def test_pinned_prompts_hold_no_open_table_and_only_known_placeholders() -> None:
    assert set(PROMPTS) == set(PLACEHOLDERS)
    assert not any("[[" in text for text in PROMPTS.values())


def test_every_request_ends_with_its_data_and_says_what_it_is() -> None:
    found = EIGHTEEN.requests
    assert {request.label for request in found} == {"outline", "entry", "lesson", "critic"}
    for request in found:
        text = request.messages[-1].text
        assert text.endswith("\n</task_data>")
        body = text.rsplit("<task_data>\n", 1)[1].removesuffix("\n</task_data>")
        shared = {"entries"} if request.label == "entry" else set()
        assert json.loads(body) == {key: value for key, value in request.data.items() if key not in shared}
        assert request.data["kind"] == request.label
        assert (request.model, request.effort) == ("some-model", "low")
        assert "{{" not in text.split("<task_data>")[0]


def test_lesson_requests_share_one_cached_prefix() -> None:
    found = [r for r in EIGHTEEN.requests if r.label == "lesson"]
    assert len(found) == 5
    assert len({request.system for request in found}) == 1
    assert all(part.cache for part in found[0].system)
    assert "num.surds.1" in found[0].system[0].text


def test_entry_requests_have_the_outline_in_their_cached_prefix_once() -> None:
    found = [r for r in EIGHTEEN.requests if r.label == "entry"]
    assert len({request.system for request in found}) == 1
    system = found[0].system[-1]
    assert system.cache
    body = system.text.split("<task_data>\n", 1)[1].split("\n</task_data>", 1)[0]
    assert json.loads(body) == {"entries": found[0].data["entries"]}
    assert len(json.loads(body)["entries"]) == 18


def test_critic_is_not_shown_keys_that_say_nothing() -> None:
    lesson = {"cards": [{"id": "c1", "note": "", "figures": [], "calc": False}]}
    entry = Entry.model_validate(next(r for r in EIGHTEEN.requests if r.label == "lesson").data["entry"])
    asked = Asks(MATHS, PROMPTS, "m").critic(entry, lesson, [])
    assert asked.data["lesson"] == {"cards": [{"id": "c1", "calc": False}]}


def test_revision_carries_the_answer_and_the_faults_and_is_another_request() -> None:
    asks, plan = Asks(MATHS, PROMPTS, "m"), make_plan(MATHS, 3)
    first = asks.outline(plan)
    again = asks.outline(plan, Draft({"entries": []}, ["entries: 0 lessons, wanted 3"]))
    assert again.data["previous"] == {"entries": []}
    assert "- entries: 0 lessons, wanted 3" in again.messages[0].text
    assert first.hash() != again.hash()
    assert (first.data["previous"], first.data["faults"]) == (None, [])


def test_task_data_leave_out_empty_keys_but_not_false() -> None:
    assert without_empty({"a": None, "b": "", "c": [], "d": False, "e": 0, "f": {"g": ""}}) == {
        "d": False,
        "e": 0,
        "f": {},
    }


@pytest.mark.parametrize("model", [Lesson, Outline, EntryDetails, Critique])
def test_wire_schema_has_names_enums_and_nesting_but_no_lengths(model: type[BaseModel]) -> None:
    text = json.dumps(wire_schema(model))
    for word in ("minLength", "maxLength", "minItems", "maxItems", "pattern", "minimum", "oneOf", "default", "const"):
        assert f'"{word}":' not in text
    assert '"description": "' not in text

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(wire_schema(model))


def test_wire_schema_keeps_fields_named_like_schema_words() -> None:
    assert "title" in wire_schema(Lesson)["properties"]
    assert wire_schema(Lesson)["properties"]["lesson_type"]["enum"][0] == "teach"


def test_estimate_counts_calls_and_holds_the_largest_request() -> None:
    rows = EIGHTEEN.rows
    assert [(row.label, row.most_calls) for row in rows] == [
        ("outline", 4), ("entry", 72), ("lesson", 68), ("lesson", 4), ("critic", 144),
    ]  # fmt: skip
    requests = EIGHTEEN.requests
    for row in rows:
        sizes = [r.size() for r in requests if r.label == row.label and r.max_tokens == row.max_tokens]
        assert sizes
        assert row.most_bytes >= max(sizes)
        assert 0 < row.output_tokens < row.max_tokens
