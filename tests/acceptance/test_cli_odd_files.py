"""Pipes, sockets, devices and folders where a file is looked for: said at once, never waited for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sample_runs import completed_run, failed_run, original_run

ROOT = Path(__file__).resolve().parents[2]
#: All command lines of a case in one process, one a line of stdin; each one's exit code.
_DRIVER = """
import shlex, sys
from pipeline.cli import main
main.load_env_file = lambda: None
for line in sys.stdin:
    try:
        code = main.main(shlex.split(line))
    except SystemExit as end:
        code = end.code
    print("CODE", code, line.strip(), file=sys.stderr, flush=True)
"""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


ODD = (pipe, folder, device, unix_socket)


def run_all(lines: list[str]) -> str:
    """What the commands say; one that waits for ever fails the test."""
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER], input="\n".join(lines), capture_output=True, text=True, timeout=600, cwd=ROOT,
        check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("CODE ") == len(lines), said
    assert "unexpected" not in said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("make", ODD)
def test_odd_file_in_a_store_is_one_bad_row_and_nothing_waits(make: Callable[[Path], None], tmp_path: Path) -> None:
    lines = []
    for number, place in enumerate(
        ("BAD/checkpoint.json", "BAD/journal.jsonl", "BAD/lock", "BAD/blobs", "ORIGINAL/checkpoint.json",
         "account.jsonl", ".lock")
    ):  # fmt: skip
        root = tmp_path / str(number)
        bad, good, original = failed_run(root), completed_run(root), original_run(root)
        path = root / place.replace("BAD", bad).replace("ORIGINAL", original)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        make(path)
        whole = ("list", "cost", "store check", f"status {good}")
        one = (f"status {bad}", f"status {original}", f"log {bad}", f"lessons --resume {bad} --yes")
        for words in (*whole, *one):
            lines.append(f"{words} --store files:{root}")
    said = run_all(lines)
    for line in said.splitlines():
        if line.startswith("CODE ") and any(word in line for word in (" list ", " cost ", "status 20260110")):
            assert line.startswith("CODE 0 "), line


@pytest.mark.parametrize("make", ODD)
def test_odd_file_named_by_a_person_is_refused_by_name(make: Callable[[Path], None], tmp_path: Path) -> None:
    store = failed_run(tmp_path / "store")
    prompts = tmp_path / "courses"
    prompts.mkdir()
    course = prompts / "mathematics-national_5.yaml"
    for path in (*(tmp_path / name for name in ("a.dot", "prices.json", "courses.csv", "kept.jsonl")), course):
        make(path)
    at = f"--store files:{tmp_path}/store"
    said = run_all([
        f"validate {tmp_path}/a.dot", f"run {tmp_path}/a.dot {at}", f"cost --reprice {tmp_path}/prices.json {at}",
        f"courses {tmp_path}/courses.csv {at} --model offline", f"recover {store} {tmp_path}/kept.jsonl {at}",
        f"subjects check {course}",
        f"lessons --subject mathematics --level national_5 --catalogue {prompts} --model offline --dry-run {at}",
        f"lessons --subject mathematics --level national_5 --prices {tmp_path}/prices.json --dry-run {at}",
    ])  # fmt: skip
    codes = [line.split()[1] for line in said.splitlines() if line.startswith("CODE ")]
    assert "0" not in codes[:7], said


def test_odd_env_file_is_said_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "pipeline.sh").touch()
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / ".env"
    for put in (*ODD, lambda path: path.write_bytes(b"PIPELINE_STORE=a\0b\nA\0B=1\nX=\0\n")):
        put(path)
        done = subprocess.run(
            [sys.executable, "-m", "pipeline", "list"], capture_output=True, text=True, timeout=300, cwd=tmp_path,
            check=False,
        )  # fmt: skip
        assert (done.returncode, ".env" in done.stderr, "unexpected" in done.stderr) == (0, True, False), done.stderr
        shutil.rmtree(path) if path.is_dir() else path.unlink()
