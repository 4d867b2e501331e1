"""A course in a database, killed with kill -9 at several places, through the real command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.pglite import PGlite
from tests.servers.pglite import pglite as pglite
from tests.servers.pglite import pglite_server as pglite_server
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql

ROOT = Path(__file__).resolve().parents[2]
COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "6"]


def command(store: str, *arguments: str) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"}
    environ = {**environ, "PIPELINE_STORE": store, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=environ,
    )


def said(store: str, *arguments: str) -> str:
    """All that a command prints; it must succeed."""
    with command(store, *arguments) as process:
        text = process.communicate()[0]
    assert process.returncode == 0, text
    return text


def killed_at(store: str, mark: str, out: Path) -> None:
    """Kill the course once it says this."""
    with command(store, *COURSE, "--out", str(out)) as process:
        assert process.stdout
        seen = []
        for text in process.stdout:
            seen.append(text)
            if mark in text:
                process.send_signal(signal.SIGKILL)
                break
        else:
            pytest.fail("".join(seen))


def pages(out: Path) -> dict[str, bytes]:
    """What was published; the receipt beside it says when and by which run."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.parent != out and path.is_file()
    }


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_course_goes_on_in_a_database_and_publishes_the_same(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = request.getfixturevalue("postgresql") if kind == "postgresql" else f"sqlite:{tmp_path}/runs.db"
    for mark in ("2 of 6", "Step 4/4"):
        killed_at(store, mark, tmp_path / "out")
        assert "interrupted" in said(store, "list")
    assert "Published" in said(store, *COURSE, "--out", str(tmp_path / "out"))
    listed = said(store, "list")
    assert listed.count("completed") == 1
    assert "interrupted" not in listed
    assert "No damage found" in said(store, "store", "check")
    whole = f"files:{tmp_path}/whole"
    said(whole, *COURSE, "--out", str(tmp_path / "ref"))
    assert pages(tmp_path / "out") == pages(tmp_path / "ref") != {}


def test_course_in_pglite_has_it_for_itself_and_goes_on_after_a_kill(pglite: PGlite, tmp_path: Path) -> None:
    with command(pglite.url, *COURSE, "--out", str(tmp_path / "out")) as process:
        assert process.stdout
        assert any("2 of 6" in text for text in process.stdout)
        process.send_signal(signal.SIGSTOP)
        with command(pglite.url, "list") as other:
            told = other.communicate()[0]
        process.kill()
    assert (other.returncode, process.returncode) == (3, -signal.SIGKILL)
    assert "it serves one at a time" in told
    assert "already made" in said(pglite.url, *COURSE, "--out", str(tmp_path / "out"))
    assert "No damage found" in said(pglite.url, "store", "check")
