"""A SQLite file that is removed under a course: what is said brings the course back, once a copy is there."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.said import Cli

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
    assert last.startswith("Hint: Bring the file back from a copy, then: ./pipeline.sh lessons --resume ")
    assert "Go on:" not in said
    (tmp_path / "copy.db").rename(file)
    after = cli(*last.partition("./pipeline.sh ")[2].split(), "--out", out)
    assert (after.code, after.err) == (0, "")
    assert "Published:" in after.out
