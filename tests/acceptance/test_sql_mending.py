"""A course in a SQLite file that somebody has changed by hand, through the real command line."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "2"]


def said(store: str, *arguments: str, code: int = 0) -> str:
    """All that a command prints."""
    environ = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**environ, "PIPELINE_STORE": store},
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def change(file: Path, *statements: str) -> None:
    with sqlite3.connect(file) as link:
        for statement in statements:
            assert link.execute(statement).rowcount == 1
    link.close()


def test_damaged_course_is_named_mended_by_the_resume_and_sound_again(tmp_path: Path) -> None:
    file, out = tmp_path / "runs.db", str(tmp_path / "out")
    store = f"sqlite:{file}"
    said(store, *COURSE, "--out", out)
    change(
        file,
        "UPDATE records SET line = replace(line, 'seed', 'weed') WHERE seq = 3",
        "DELETE FROM records WHERE seq = 9",
        "INSERT INTO records SELECT journal, max(seq) + 1, 'junk', NULL FROM records WHERE journal ="
        " (SELECT journal FROM journals WHERE path = '' AND run NOT LIKE '.%')",
    )
    found = said(store, "store", "check", code=3)
    for words in (
        "bytes between records 2 and 4 are not a record.",
        "Record 9 is missing from the journal; the next resume records that.",
        "The last 5 bytes are an incomplete record.",
    ):
        assert words in found
    told = said(store, "lessons", "--resume", "latest", "--out", out)
    assert "The journal was repaired: records in the middle were damaged" in told
    assert "kept in journal.damaged-1" in told
    assert "Published" in told
    log = said(store, "log", "latest")
    assert "record 3 is missing: records in the middle were damaged" in log
    assert "record 9 is missing" in log
    sound = said(store, "store", "check")
    assert "No damage found." in sound
    assert "(harmless) Record 3 is lost: records in the middle were damaged; journal.damaged-1" in sound
