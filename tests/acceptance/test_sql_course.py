"""A course in a database, through the real program: harmed and mended, and where one is served at a time."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.said import Cli
from tests.servers.pglite import PGlite
from tests.servers.pglite import pglite as pglite
from tests.servers.pglite import pglite_server as pglite_server

COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5"]


def test_damaged_course_is_named_mended_by_the_resume_and_sound_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "runs.db", str(tmp_path / "out")
    monkeypatch.setenv("PIPELINE_STORE", f"sqlite:{file}")
    assert cli(*COURSE, "--lessons", "2", "--out", out).code == 0
    with sqlite3.connect(file) as link:
        for statement in (
            "UPDATE records SET line = replace(line, 'seed', 'weed') WHERE seq = 3",
            "DELETE FROM records WHERE seq = 9",
            "INSERT INTO records SELECT journal, max(seq) + 1, 'junk', NULL FROM records WHERE journal ="
            " (SELECT journal FROM journals WHERE path = '' AND run NOT LIKE '.%')",
        ):
            assert link.execute(statement).rowcount == 1
    link.close()
    found = cli("store", "check")
    assert found.code == 3
    for words in (
        "bytes between records 2 and 4 are not a record.",
        "Record 9 is missing from the journal; the next resume records that.",
        "The last 5 bytes are an incomplete record.",
    ):
        assert words in found.out
    resumed = cli("lessons", "--resume", "latest", "--out", out)
    assert (resumed.code, "Published" in resumed.out) == (0, True)
    assert "kept in journal.damaged-1" in resumed.out + resumed.err
    log = cli("log", "latest").out
    assert "record 3 is missing: records in the middle were damaged" in log
    assert "record 9 is missing" in log
    sound = cli("store", "check")
    assert (sound.code, "No damage found." in sound.out) == (0, True)
    assert "(harmless) Record 3 is lost: records in the middle were damaged; journal.damaged-1" in sound.out


def test_course_in_pglite_has_it_for_itself_and_goes_on_after_a_kill(
    pglite: PGlite, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = [*COURSE, "--lessons", "6", "--out", str(tmp_path / "out")]
    env = {**os.environ, "PIPELINE_STORE": pglite.url, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pipeline", *course]
    monkeypatch.setenv("PIPELINE_STORE", pglite.url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        assert process.stdout
        assert any("2 of 6" in text for text in process.stdout)
        process.send_signal(signal.SIGSTOP)
        other = cli("list")
        process.kill()
    assert (other.code, process.returncode) == (3, -signal.SIGKILL)
    assert "it serves one at a time" in other.err
    resumed = cli(*course)
    assert (resumed.code, "already made" in resumed.out) == (0, True), resumed.err
    assert "No damage found" in cli("store", "check").out
