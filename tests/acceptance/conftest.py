"""The command line in this process, over a store of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import environment
from pipeline.cli.main import main
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
