"""The command line in this process, over a store of the test's own; or in forks of a process that is ready."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.cli.main import main
from tests.acceptance.killing import Starter
from tests.said import Cli, Said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setattr(environment, "home", lambda: root.parent)
    monkeypatch.setenv("PIPELINE_STORE", f"files:{root}")
    monkeypatch.delenv("LC_ALL", raising=False)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = main(arguments)
        return Said(code, *capsys.readouterr())

    return run


# Not for the whole session: the starts of a test that failed would answer those of another file.
@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    """Starts the program as one process after the other."""
    made = Starter()
    # The first start waits for all imports.
    made.start(["--help"], {}, Path(os.devnull))
    made.wait()
    yield made
    made.close()
