"""What the guides show is run: the examples, what they promise, and the fields of --json."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline import Message, Request, open_store
from pipeline.llm.script import stand_in
from tests.documents import DOCS, ROOT, codes, fenced, table
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder, echo

EXAMPLES = DOCS / "examples"
TOWNS = 'towns=["Oban","Nairn"]'


@pytest.fixture
def responder() -> Responder:
    return echo


POSTCARDS = f"{EXAMPLES / 'postcards.py'}:PIPELINE"


def python(*arguments: str) -> str:
    """What a program prints that is started as the guides start it."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_example_that_asks_runs_without_a_key_on_stand_ins(cli: Cli, root: Path) -> None:
    said = cli("run", POSTCARDS, "--param", TOWNS)
    assert (said.code, "--model offline" in said.err, root.exists()) == (2, True, False)
    assert "This run has no model" in said.err
    assert "There is no store at" in cli("list").out
    for model in ("gpt-4o", "mistral-large"):
        said = cli("run", POSTCARDS, "--param", TOWNS, "--model", model)
        assert (said.code, model in said.err, "ANTHROPIC_API_KEY" in said.err) == (2, True, False)
    said = cli("run", POSTCARDS, "--param", TOWNS, "--model", "offline")
    assert said.code == 0, said.err
    assert "Cost: $0.00" in said.out
    assert cli("run", POSTCARDS, "--resume", "latest").code == 0
    assert "else offline" not in cli("run", "--help").out


def test_stand_in_has_the_form_that_the_schema_wants() -> None:
    schema = {
        "type": "object",
        "required": ["title", "parts", "kind", "grade", "next"],
        "properties": {
            "title": {"type": "string", "maxLength": 10},
            "parts": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/part"}},
            "kind": {"enum": ["a", "b"]},
            "grade": {"type": "integer", "minimum": 1},
            "next": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
        },
        "$defs": {"part": {"type": "object", "properties": {"done": {"type": "boolean"}}}},
    }
    found = json.loads(stand_in(Request("m", [Message("user", "What?")], schema=schema)))
    part = {"done": False}
    assert found == {"title": "[offline s", "parts": [part, part], "kind": "a", "grade": 1, "next": part}
    endless = {"$ref": "#"}
    assert json.loads(stand_in(Request("m", [], schema=endless))) is None


def test_docs_examples_print_what_the_guides_show(tmp_path: Path) -> None:
    words = python("-m", "pipeline", "run", f"{EXAMPLES / 'word_count.py'}:PIPELINE", "--store", f"files:{tmp_path}",
                   "--param", 'texts={"haiku": "an old silent pond"}')  # fmt: skip
    assert "total 4" in words
    assert python(str(EXAMPLES / "graph_checkpoints.py"), str(tmp_path)).splitlines() == [
        "['review', 'draft', 'outline']",
        "{'title': 'Tides, briefly'} ['outline->draft']",
        "Tides, at length: 2 parts",
        "Moons: 2 parts",
    ]
    (shown,) = [block for block in fenced("orchestrator.md", "text") if "library.py" in block]
    assert python(str(EXAMPLES / "library.py")) == shown.partition("\n")[2]
    guide = (DOCS / "orchestrator.md").read_text(encoding="utf-8")
    blocks = [block.strip() for block in fenced("orchestrator.md", "python") if "PIPELINE = " in block]
    for name in ("postcards.py", "review.py"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert any(block in text for block in blocks)
        assert f"examples/{name}" in guide
    (shown,) = [block for block in fenced("orchestrator.md", "text") if "asyncio_runs.py" in block]
    assert sorted(python(str(EXAMPLES / "asyncio_runs.py")).splitlines()) == sorted(shown.splitlines()[1:])


def test_docs_examples_of_typed_answers_are_the_files_own_and_run_without_a_key(cli: Cli) -> None:
    said = cli("run", str(EXAMPLES / "quiz.py"), "--param", "subject=tides", "--model", "offline")
    assert said.code == 0, said.err
    assert cli("show", "latest", "total").out.count("questions: 1") == 1
    for guide, name in (
        ("orchestrator.md", "quiz.py"),
        ("quickstart.md", "quiz.py"),
        ("orchestrator.md", "asyncio_runs.py"),
    ):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        shown = [part for block in fenced(guide, "python") for part in block.strip().split("\n\n\n")]
        assert any(part in text for part in shown), (guide, name)


def quiz(body: Mapping[str, Any], fault: str) -> str:
    """A plan and questions; the first of each is not yet as wanted."""
    asked = [turn for turn in body["messages"] if turn["role"] == "user"]
    topics = {"title": "Tides", "topics": ["moon", "sun"][: len(asked)] if len(asked) > 1 else []}
    question = {"text": "Why?", "answer": "Gravity.", "marks": 2 if len(asked) > 1 else "two"}
    return json.dumps(topics if "topics" in body["output_config"]["format"]["schema"]["properties"] else question)


def test_docs_example_of_typed_answers_has_each_try_in_the_ledger(cli: Cli, server: BillingServer) -> None:
    server.reset(responder=quiz)
    said = cli("run", str(EXAMPLES / "quiz.py"), "--param", "subject=tides", "--max-cost-usd", "1")
    assert said.code == 0, said.err
    assert "marks 4, questions 2" in said.out
    rows = [row for row in cli("cost", "latest", "--by", "call", "--json").json() if row.get("type") == "call"]
    assert len(server.seen) == len(rows) == 6
    tries = [("plan", ""), ("plan", "rejected"), *[("question", ""), ("question", "rejected")] * 2]
    assert sorted((row["label"], row["cause"]) for row in rows) == sorted(tries)
    total = cli("cost", "latest", "--json").json()[-1]
    assert total["cost_usd"] == pytest.approx(float(server.bill.usd))


def test_docs_notebook_runs_cell_by_cell_in_the_thread_of_a_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    module = ModuleType("a_notebook")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    async def cells() -> list[Any]:
        """Run them as a kernel does: each in the thread of its loop, where a cell may await."""
        values = []
        for number, cell in enumerate(each for each in notebook["cells"] if each["cell_type"] == "code"):
            tree = ast.parse("".join(cell["source"]))
            if isinstance(tree.body[-1], ast.Expr):
                last = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
                tree.body[-1] = ast.fix_missing_locations(ast.copy_location(last, tree.body[-1]))
            code = compile(tree, f"cell {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waits = eval(code, vars(module))
            if code.co_flags & inspect.CO_COROUTINE:
                await waits
            values.append(vars(module).get("_"))
        return values

    _, status, cards, again, beside = asyncio.run(cells())
    assert (status, again, beside) == ("completed", (True, 0), "completed")
    assert [type(card).__name__ for card in cards] == ["Card", "Card"]


def test_docs_example_remembers_what_a_step_wrote_once(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("memory_file", EXAMPLES / "memory_file.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    memory = example.FileMemory(tmp_path / "memory.jsonl")
    store = open_store(f"files:{tmp_path / 'store'}")
    results = [
        example.PIPELINE.run({"town": "Oban"}, store=store, services={"memory": memory}).outputs["visit"]
        for _ in range(2)
    ]
    assert [result["visits_before"] for result in results] == [0, 1]
    assert [row["content"] for row in memory.rows()] == ["Oban, visit 1", "Oban, visit 2"]


def test_docs_example_pays_once_for_each_postcard_with_the_events_of_the_guide(cli: Cli, server: BillingServer) -> None:
    said = cli("run", POSTCARDS, "--param", TOWNS, "--max-cost-usd", "1", "--json")
    assert said.code == 0, said.err
    rows = [*table("observability.md", "Type", "Told when"), *table("observability.md", "Type", "Written when")]
    documented = {codes(row[0])[0]: set(codes(row[2])) for row in rows}
    for line in said.json():
        assert set(line) - {"v", "type", "at"} == documented[line["type"]], line["type"]
        assert all(not isinstance(value, str) for name, value in line.items() if name.endswith("usd"))
    assert cli("run", POSTCARDS, "--resume", "latest", "--quiet").code == 0
    assert len(server.seen) == 3
    total = cli("cost", "latest", "--json").json()[-1]
    assert total["cost_usd"] == pytest.approx(float(server.bill.usd))


def test_pipeline_that_did_not_say_it_asks_stops_at_its_first_ask_and_goes_on_with_a_key(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXAMPLES / "postcards.py").read_text(encoding="utf-8").replace(", asks=True", "")
    (tmp_path / "cards.py").write_text(text, encoding="utf-8")
    target = f"{tmp_path / 'cards.py'}:PIPELINE"
    said = cli("run", target, "--param", TOWNS)
    assert said.code == 2
    assert said.err.count("This run has no model") == 1
    assert "task_failed" not in cli("log", "latest").out
    assert "Oban" not in said.out
    # What is to be typed names the file wherever it is shown.
    for shown in (said.err, cli("list").out, cli("status", "latest").out):
        assert f"./pipeline.sh run {target} --resume 2" in shown
    with BillingServer() as running:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-not-a-real-key-0123456789")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.url)
        again = cli("run", target, "--resume", "latest")
        assert again.code == 0, again.err
        assert len(running.seen) == 3


def test_docs_example_goes_round_and_commands_that_look_have_the_fields_of_the_guide(cli: Cli) -> None:
    assert cli("run", f"{EXAMPLES / 'review.py'}:PIPELINE", "--param", "wanted=3", "--quiet").code == 0
    steps = [step["step"] for step in cli("status", "latest", "--json").json()[0]["steps"]]
    assert [name for name in steps if name.startswith("draft")] == ["draft", "draft#2", "draft#3"]
    assert steps[-1] == "done"
    documented = {codes(row[0])[0].split()[0]: codes(row[2]) for row in table("observability.md", "Command")}
    for command in ("list", "status", "history"):
        arguments = [] if command == "list" else ["latest"]
        line = cli(command, *arguments, "--json").out.splitlines()[0]
        assert ["v", *documented[command]] == list(json.loads(line)), command
    assert {"v", *documented["log"]} <= set(cli("log", "latest", "--json").json()[0])


def test_pipeline_in_the_readme_is_the_example_that_its_command_runs(cli: Cli) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.partition("```python\n")[2].partition("```")[0]
    example = ROOT / "devops" / "docs" / "examples" / "word_count.py"

    def lines(code: str) -> list[str]:
        return [line for line in code.splitlines() if line]

    assert lines(block) == lines(example.read_text(encoding="utf-8").partition('"""\n\n')[2])
    assert cli("run", str(example), "--param", 'texts={"haiku": "an old silent pond"}').code == 0
