"""Commands that only look start fast: they load nothing that they do not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import COMPLETE_VARIABLE
from tests.sample_runs import completed_run

ROOT = Path(__file__).resolve().parents[2]
#: What reads records: not needed for runs whose checkpoint.json is up to date.
FOLD = {"pipeline.records.kinds", "pipeline.records.fold", "pipeline.store.files", "pipeline.store.head_rebuild"}
BACKEND = {"decimal", "hashlib", "shutil", "textwrap", "pipeline.store.folder", "pipeline.store.heads"}
HEAVY = {
    "anthropic", "asyncio", "genai_prices", "httpx2", "jinja2", "pipeline.ui", "pydantic", "pydantic_core", "rich",
    "sqlite3", "starlette", "tenacity", "uvicorn",
}  # fmt: skip


def loaded_by(*arguments: str, cwd: Path, **variables: str) -> set[str]:
    """The modules that a command imports, and the packages they are in, seen from outside."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    result = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "pipeline", *arguments],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    names = {line.rpartition("|")[2].strip() for line in lines}
    return names | {name.partition(".")[0] for name in names}


#: Asks for a form that pydantic knows nothing of, then for a dataclass.
FORMS = """
import sys
from dataclasses import dataclass
from pipeline import Message, Pipeline, Request, step
@dataclass
class Card:
    town: str
@step()
def ask(ctx):
    seen = []
    for returns in ({"type": "object", "properties": {}}, Card):
        ctx.ask(Request("offline", [Message("user", "?")]), returns=returns)
        seen.append("pydantic" in sys.modules)
    return {"seen": seen}
print(Pipeline("forms", [ask]).run(store="memory:", model="offline").outputs["ask"]["seen"])
"""


def test_pydantic_is_loaded_when_a_class_is_given_as_the_form_of_an_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", FORMS]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[False, True]", "")


COMPLETION = {COMPLETE_VARIABLE: "bash_complete", "COMP_WORDS": "pipeline.sh lessons --", "COMP_CWORD": "2"}


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["--help"], {}), (["lessons", "--help"], {}), (["ui", "--help"], {}), ([], COMPLETION)],
)
def test_command_loads_nothing_heavy(tmp_path: Path, arguments: list[str], variables: dict[str, str]) -> None:
    loaded = loaded_by(*arguments, cwd=tmp_path, **variables)

    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_list_loads_what_reads_records_only_for_a_run_that_needs_it(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    run = completed_run(root)
    arguments = ("list", "--store", f"files:{root}")
    assert loaded_by(*arguments, cwd=tmp_path) & (FOLD | HEAVY) == set()

    (root / run / "checkpoint.json").unlink()
    assert loaded_by(*arguments, cwd=tmp_path) >= FOLD - {"pipeline.store.files"}


def test_list_of_a_store_without_runs_loads_no_backend(tmp_path: Path) -> None:
    loaded = loaded_by("list", "--store", "files:none", cwd=tmp_path)
    assert loaded & (HEAVY | BACKEND) == set()


def test_run_of_a_pipeline_of_ones_own_loads_nothing_of_what_publishes_courses(tmp_path: Path) -> None:
    file = ROOT / "devops/docs/examples/word_count.py"
    loaded = loaded_by("run", str(file), "--param", 'texts={"a": "b c"}', "--store", "files:runs", cwd=tmp_path)
    assert "pipeline.engine.loop" in loaded
    assert loaded & {"sympy", "pipeline.publish.site", "pipeline.drawing", "pipeline.maths"} == set()
