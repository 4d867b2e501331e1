"""What is told to install is what the project declares, and what its tests run on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.extras import ALIASES, EXTRAS, MODULES, how_to_install, packages

ROOT = Path(__file__).parents[3]


def test_extras_are_those_that_the_project_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: declared.pop(name) for name in ALIASES} == {name: declared[its] for name, its in ALIASES.items()}
    assert {name: list(wanted) for name, wanted in EXTRAS.items()} == declared


def test_command_to_install_an_extra_can_be_pasted_where_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how_to_install("ui") == "./pipeline.sh install ui"
    monkeypatch.setattr(environment, "is_installed", lambda: True)
    assert how_to_install("postgres") == "pip install 'course-pipeline[postgres]'"


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python in which no optional package can be imported."""
    hidden = tuple(MODULES.get(name, name) for extra in EXTRAS for name in packages(extra))
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {hidden!r} or name.startswith(tuple(each + '.' for each in {hidden!r})):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "PIPELINE_STORE": "",
            "COVERAGE_PROCESS_START": ""}  # fmt: skip


def test_what_an_extra_needs_is_shown_before_anything_fails_and_named_where_it_does(
    without: dict[str, str], tmp_path: Path
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pipeline", *arguments]
        return subprocess.run(command, env=without, text=True, capture_output=True, check=False)

    shown = [json.loads(line) for line in run("extras", "--json").stdout.splitlines()]
    assert {row["extra"]: row["missing"] for row in shown} == {extra: packages(extra) for extra in EXTRAS}
    assert all(row["install"] == how_to_install(row["extra"]) for row in shown)
    course = ("lessons", "--subject", "maths", "--level", "n5", "--lessons", "2", "--model", "offline")
    files = f"files:{tmp_path}/runs"
    assert run(*course, "--store", files, "--out", str(tmp_path / "site")).returncode == 0
    assert run("store", "copy", files, f"sqlite:{tmp_path}/runs.db").returncode == 0
    for target, extra in (("postgresql://me@localhost/runs", "postgres"), ("s3://bucket/prefix", "objects")):
        said = run("store", "copy", files, target)
        assert said.returncode == 2, said.stderr
        assert all(name in said.stderr for name in packages(extra)), said.stderr
        assert how_to_install(extra) in said.stderr
        assert "damaged" not in said.stderr
