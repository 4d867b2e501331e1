"""The command line in this process, over a store of the test's own; or in forks of a process that is ready."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.cli.main import main
from tests.acceptance.killing import Starter
from tests.browsers import chromium as chromium
from tests.browsers import window as window
from tests.desks import Served, serving
from tests.said import Cli, Said
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer
from tests.servers.replies import Responder


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


@pytest.fixture
def out(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where courses are published unless an option says otherwise."""
    monkeypatch.setenv("PIPELINE_OUT", str(root.parent / "site"))
    return root.parent / "site"


@pytest.fixture
def responder() -> Responder:
    """How the server answers: as the author of lessons, unless a file of tests has another."""
    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, responder: Responder) -> Iterator[BillingServer]:
    """A server that keeps a bill; the program finds it and a credential in the environment."""
    with BillingServer(responder=responder) as made:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-not-a-real-key-0123456789")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", made.url)
        yield made


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    """Starts the program at the price of a fork."""
    made = Starter()
    # The first start waits for all imports.
    made.start(["--help"], {}, Path(os.devnull))
    made.wait()
    yield made
    made.close()


@pytest.fixture
def desk(root: Path) -> Iterator[Served]:
    """The desk over `root`: the real server on a free port."""
    with serving(f"files:{root}") as served:
        yield served
