"""The scripts for Google Forms, run by Node with a stand-in for Google's services that notes what is asked of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from pipeline.export.base import Selection, export
from pipeline.formulas.plain_text import plain
from pipeline.publish.view import CourseView
from tests.publishing import HOSTILE
from tests.sites import BUNDLES

_GOOGLE = """
const noted = [];
const maker = (kind) => {
  const row = { kind };
  noted.push(row);
  const item = new Proxy({}, { get: (_, name) => (...given) => {
    if (name === "createChoice") return { text: given[0], right: given[1] };
    row[name] = given[0];
    return item;
  }});
  return item;
};
const FormApp = {
  create: (title) => {
    const form = new Proxy({}, { get: (_, name) => (...given) => {
      if (name === "getEditUrl") return "edit";
      if (name.startsWith("add")) return maker(name);
      noted.push({ kind: name, value: given[0] });
      return form;
    }});
    noted.push({ kind: "create", value: title });
    return form;
  },
  createFeedback: () => ({ setText: (text) => ({ build: () => text }) }),
};
const Utilities = { base64Decode: (text) => Buffer.from(text, "base64"), newBlob: (bytes) => bytes.length };
const Logger = { log: () => {} };
"""


def _made(script: bytes) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    program = f"{_GOOGLE}\n{script.decode()}\nmakeQuiz();\nconsole.log(JSON.stringify(noted));"
    done = subprocess.run([node, "-"], input=program, capture_output=True, text=True, timeout=300, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize("name", ["model", "mock"])
def test_script_makes_the_questions_of_its_lesson(name: str) -> None:
    view = CourseView(BUNDLES[name])
    scripts = export(Selection(view, view.lessons), ["google-forms"])
    assert len(scripts) == len(view.lessons)
    for lesson, script in zip(view.lessons, scripts.values(), strict=True):
        rows = [row for row in _made(script) if "setPoints" in row]
        assert sum(row["setPoints"] for row in rows) == sum(question.marks for question in lesson.questions)
        firsts = {row["setTitle"].partition(".")[0].partition("(")[0]: row for row in rows[::-1]}
        for question in lesson.questions:
            row = firsts[str(question.number)]
            assert plain(question.ask) in row["setTitle"]
            choices = [(plain(option.text), option.right) for option in question.options]
            assert [(each["text"], each["right"]) for each in row.get("setChoices", [])] == choices


def test_nothing_of_a_text_is_run() -> None:
    bundle = BUNDLES["model"]
    row = json.loads(json.dumps(bundle.lessons[0]))
    hostile = f'{HOSTILE} */ process.exit(3); /* `${{process.exit(3)}}` ");process.exit(3);//\u2028'
    row["lesson"]["title"] = hostile
    for card in row["lesson"]["cards"]:
        for item in card.get("items", ()):
            item["ask"] = item["feedback"] = hostile
    view = CourseView(replace(bundle, lessons=[row]))
    [script] = export(Selection(view, view.lessons), ["google-forms"]).values()
    assert b"</" not in script
    assert any(plain(hostile) in row.get("setTitle", "") for row in _made(script))
