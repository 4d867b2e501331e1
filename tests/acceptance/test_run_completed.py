"""A completed run that is taken up again: nothing to do, so nothing is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import run_dot
from tests.acceptance.dots import SHIP, TOOLS, put
from tests.said import Cli
from tests.servers.billing import BillingServer


def test_completed_run_needs_no_permission(cli: Cli, tmp_path: Path) -> None:
    file, folder = put(tmp_path, TOOLS), str(tmp_path / "own")
    done = cli("run", file, "--simulate", "--allow-tools", "--param", "reader=Ann", "--run-dir", folder)
    assert done.code == 0, done.err
    for again in (["--resume", folder], [file, "--resume", folder], [file, "--resume-from", folder]):
        said = cli("run", *again)
        assert said.code == 0, said.err
        assert "already completed" in said.out
        assert "Step" not in said.out
    assert run_dot(file, resume=folder).status == "completed"


def test_completed_run_that_is_to_do_more_needs_it_again(cli: Cli, tmp_path: Path) -> None:
    file, folder = put(tmp_path, TOOLS), str(tmp_path / "own")
    assert cli("run", file, "--simulate", "--allow-tools", "--param", "reader=Ann", "--run-dir", folder).code == 0
    said = cli("run", "--resume", folder, "--from", "hello")
    assert said.code == 2
    assert "--allow-tools" in said.err


def test_completed_run_needs_no_credential(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tale = "from pipeline import Pipeline, step\n@step()\ndef one(ctx):\n    return {}\nONE = Pipeline('one', [one])\n"
    target = put(tmp_path, tale, "tale.py") + ":ONE"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    with BillingServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        said = cli("run", target, "--max-cost-usd", "3")
        assert "Model: claude-" in said.out
        assert "Ceiling: $3" in said.out
        assert cli("run", put(tmp_path, SHIP), "--run-dir", str(tmp_path / "own")).code == 0
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    for again in ([target, "--resume", "latest"], ["--resume", str(tmp_path / "own")]):
        said = cli("run", *again)
        assert said.code == 0, said.err
        assert "already completed" in said.out
