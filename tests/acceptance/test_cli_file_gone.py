"""A store that goes away under a course: nothing more is asked, and what is said brings the course back."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer

ROOT = Path(__file__).resolve().parents[2]
COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "4"]


def test_course_whose_file_was_removed_goes_on_in_a_copy_as_it_is_told(cli: Cli, tmp_path: Path) -> None:
    file, out = tmp_path / "runs.db", str(tmp_path / "site")
    store = f"sqlite:{file}"
    command = [sys.executable, "-u", "-m", "pipeline", *COURSE, "--out", out, "--store", store]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)
    ) as process:
        assert process.stdout
        assert process.stderr
        while "Step 2" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            source.backup(copy)
        for each in tmp_path.glob("runs.db*"):
            each.unlink()
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate()
    assert process.returncode == 3
    assert "is gone: it was removed or replaced" in said
    last = said.splitlines()[-1]
    assert last.startswith("Hint: Restore the file from a copy, then: ./pipeline.sh lessons --resume ")
    assert "Resume:" not in said
    books = cli("cost", "--store", store)
    assert "holds its last records" in books.out + books.err
    assert "at least" in books.out
    (tmp_path / "copy.db").rename(file)
    after = cli(*last.partition("./pipeline.sh ")[2].split(), "--out", out)
    assert (after.code, after.err) == (0, "")
    assert "Published:" in after.out


AWAY: dict[str, Callable[[Path], object]] = {
    "store": lambda root: shutil.rmtree(root),
    "run": lambda root: shutil.rmtree(next(root.glob("2*"))),
    "journal": lambda root: next(root.glob("2*/journal.jsonl")).unlink(),
    "moved": lambda root: root.rename(root.with_name("elsewhere")),
}


@pytest.mark.parametrize("what", AWAY)
def test_course_whose_store_goes_away_asks_nothing_more_and_is_paid_once(
    cli: Cli, root: Path, out: Path, server: BillingServer, what: str
) -> None:
    calls = 0

    def responder(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            AWAY[what](root)
        return answer(*given, **named)

    server.responder = responder
    left = cli(*COURSE, "--model", "claude-sonnet-5-5", "--concurrency", "1", "--yes")
    assert (left.code, calls) == (3, 4)
    assert "Saved:" not in left.err
    _, spent, kept, hint = left.err.splitlines()
    assert spent.startswith("Spent: $")
    again = kept.partition("./pipeline.sh ")[2].removesuffix(" restores it")
    if what in ("store", "run"):
        told = cli("cost", "--json").json()
        assert [row["type"] for row in told] == ["unread", "total"]
        assert told[-1]["at_most_usd"] is None, "what the run cost is not counted"
    if what == "moved":
        root.with_name("elsewhere").rename(root)
    else:
        assert cli(*shlex.split(again)).code == 0
        assert cli("cost", "--json").json()[-1]["at_most_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6)
    after = cli(*shlex.split(hint.partition("./pipeline.sh ")[2]), "--yes")
    assert (after.code, after.err) == (0, "")
    assert list(out.iterdir())
    assert calls == 13, "a course of four lessons, each reply bought once"
    assert cli("cost", "--json").json()[-1]["at_most_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6)
