"""The hash of the user's source text: what changes it, what does not, and where there is not text."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline import compile_graph, parse_dot
from pipeline.clock import SystemClock
from pipeline.engine import bodies
from pipeline.engine.bodies import code_of
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.casys.dag import DagTask
from pipeline.formats.casys.tools import step_of
from pipeline.lessons.pipeline import PIPELINE

TEXT = """
import functools
from prompts_of_test import TEMPLATE, phrase
import prompts_of_test

PROMPT = "Write about"
OTHER = "Never named"
LIMIT = 3

def clean(text):
    return text.strip()

class Checker:
    def check(self, text):
        return text

def body(ctx, item):
    # A remark
    return Checker().check(clean(PROMPT + item)) + TEMPLATE + phrase() + prompts_of_test.LAST

lines = [lambda ctx: "first", lambda ctx: "second"]
partial = functools.partial(body, item="x")

def outer():
    def inner(ctx):
        return "inner"
    return inner

inner = outer()

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@decorated
def wrapped(ctx):
    return "wrapped"

class Called:
    def __call__(self, ctx):
        return "called"

called = Called()
method = Checker().check
"""
PROMPTS = 'TEMPLATE = "A template"\nLAST = "last"\nUNUSED = 1\ndef phrase():\n    return "a phrase"\n'


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Loads the module anew, with edits (was, is) of its text or of what it imports."""

    def loaded(*edits: tuple[str, str]) -> Any:
        texts = {"own": TEXT, "prompts_of_test": PROMPTS}
        for was, now in edits:
            name = "own" if was in TEXT else "prompts_of_test"
            assert was in texts[name]
            texts[name] = texts[name].replace(was, now)
        for name in ("prompts_of_test", "own"):
            path = tmp_path / f"{name}.py"
            path.write_text(texts[name])
            module = ModuleType(name)
            module.__file__ = str(path)
            sys.modules[name] = module
            exec(compile(texts[name], str(path), "exec"), module.__dict__)
        return module

    yield loaded
    for name in ("own", "prompts_of_test"):
        sys.modules.pop(name, None)


def test_hash_follows_the_text_of_the_body_and_of_all_that_it_names(load: Callable[..., Any]) -> None:
    before = code_of(load().body)
    assert before
    assert code_of(load().body) == before
    for edit in (
        ("Write about", "Tell of"), ("text.strip()", "text.lower()"), ("return text\n", "return text * 2\n"),
        ("A template", "Another"), ('"last"', '"least"'), ("a phrase", "two"), ("Checker().check(", "str("),
    ):  # fmt: skip
        assert code_of(load(edit).body) not in ("", before), edit
    for edit in (("Never named", "Still not"), ("UNUSED = 1", "UNUSED = 2"), ("LIMIT = 3", "LIMIT = 4\n\n\n")):
        assert code_of(load(edit).body) == before, edit


@pytest.mark.parametrize("name", ["partial", "inner", "wrapped", "called", "method"])
def test_body_of_any_form_is_found(load: Callable[..., Any], name: str) -> None:
    words = {"partial": '"Write about', "inner": '"inner"', "wrapped": '"wrapped"', "called": '"called"',
             "method": "return text\n"}[name]  # fmt: skip
    before = code_of(getattr(load(), name))
    assert before
    assert code_of(
        getattr(load((words, words.replace("return text", "return text * 2").replace('"', '"E', 1))), name)
    ) not in ("", before)


def test_lambda_is_found_by_its_line(load: Callable[..., Any]) -> None:
    before = [code_of(each) for each in load().lines]
    assert all(before)
    assert [code_of(each) for each in load(('"first"', '"other"')).lines] != before


def test_thousand_steps_of_one_definition_cost_one_look_at_its_text(load: Callable[..., Any]) -> None:
    outer = load().outer
    assert code_of(outer())
    files: set[str] = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        assert code_of(outer()) == code_of(outer())
    finally:
        sys.setprofile(None)
    assert bodies.__file__ in files
    assert ast.__file__ not in files


def test_where_there_is_no_text_there_is_no_hash() -> None:
    names: dict[str, Any] = {}
    exec("def body(ctx): return 1\nother = lambda ctx: 2", names)
    made = [names["body"], names["other"], functools.partial(names["body"]), len, str, type("C", (), {})(), None]
    assert [code_of(body) for body in made] == [""] * len(made)
    assert {code_of(spec.run) for spec in PIPELINE.definition.steps.values()} == {""}


def test_function_that_a_graph_or_a_layer_calls_is_found() -> None:
    def mine(ctx: Any) -> dict[str, int]:
        return {"a": 1}

    found = standard_registry()
    found.register("mine", mine)
    text = "digraph { start [shape=Mdiamond] x [type=mine, goal_gate=true] y [prompt=Y] exit [shape=Msquare] "
    graph = compile_graph(parse_dot(text + "start -> x -> y -> exit }"), registry=found)
    codes = {name: code_of(spec.run) for name, spec in graph.definition.steps.items()}
    assert {name for name, code in codes.items() if code} == {"x"}
    layer = step_of(DagTask("a"), mine, {}, SystemClock())
    assert code_of(layer) == code_of(mine) == codes["x"]
