"""Several processes and threads at one store: one owner, one id each, one holder of a claim, one limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import RunLocked, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.store.account import FileAccount
from pipeline.store.files import FileStore
from pipeline.store.owner import process, process_started
from tests.journals import AT, CLAIM, StillClock, line, started

ROOT = Path(__file__).resolve().parents[3]

CREATE = """
import sys
from pipeline.clock import SystemClock
from pipeline.errors import RunExists
from pipeline.store.files import FileStore
from tests.journals import AT, CLAIM, started
store = FileStore(sys.argv[1], SystemClock())
claim = CLAIM if sys.argv[2] == "claim" else None
print("ready", flush=True)
sys.stdin.readline()
try:
    run, journal = store.create(started(claim, at=AT), [b"graph"], at=AT, claim=claim)
    print("made", run, flush=True)
    sys.stdin.readline()
except RunExists as error:
    print("exists", error.data["run"], flush=True)
"""
RESERVE = """
import sys
from decimal import Decimal
from pipeline.clock import SystemClock
from pipeline.store.account import FileAccount
from tests.journals import AT
account = FileAccount(sys.argv[1], SystemClock())
print("ready", flush=True)
sys.stdin.readline()
print(sum(account.reserve("me", Decimal("0.7"), AT, Decimal(20)) is not None for _ in range(30)), flush=True)
"""


class Children:
    """Python processes that wait for a line before they act."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, code: str, *words: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.running.append(child)
        return child

    def go(self) -> list[list[str]]:
        """Let all act at once; the words each answers."""
        for child in self.running:
            assert says(child) == ["ready"]
        for child in self.running:
            tell(child)
        return [says(child) for child in self.running]


def says(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout
    return child.stdout.readline().split()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.fixture
def children() -> Iterator[Children]:
    group = Children()
    yield group
    for child in group.running:
        child.kill()
        child.communicate()


def test_run_owned_by_another_process_is_locked_until_that_is_killed(tmp_path: Path, children: Children) -> None:
    child = children.start(CREATE, str(tmp_path), "free")
    ((_, run),) = children.go()
    store = FileStore(tmp_path, SystemClock())
    with pytest.raises(RunLocked) as caught:
        store.open(run)
    assert str(child.pid) in caught.value.message
    assert str(process()["host"]) in caught.value.message
    assert (caught.value.data["pid"], caught.value.data["run"]) == (child.pid, run)
    (head,) = store.heads()
    assert (head.owned, head.document["status_detail"]) == (True, "running")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (head,) = store.heads()
    assert (head.owned, head.document["status_detail"]) == (False, "interrupted")
    store.open(run).close()


def test_five_runs_started_in_one_second_are_five_runs(tmp_path: Path, children: Children) -> None:
    for _ in range(5):
        children.start(CREATE, str(tmp_path), "free")
    names = {run for _, run in children.go()}
    assert names == {"20260109_143022", *(f"20260109_143022_0{number}" for number in range(2, 6))}
    assert len(list(FileStore(tmp_path, SystemClock()).heads())) == 5


def test_five_starts_of_one_course_make_one_run(tmp_path: Path, children: Children) -> None:
    for _ in range(5):
        children.start(CREATE, str(tmp_path), "claim")
    answers = sorted(children.go())
    assert answers == [*[["exists", "20260109_143022"]] * 4, ["made", "20260109_143022"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "20260109_143022"]


def test_processes_that_reserve_at_once_never_pass_the_limit(tmp_path: Path, children: Children) -> None:
    for _ in range(2):
        children.start(RESERVE, str(tmp_path))
    granted = sum(int(words[0]) for words in children.go())
    assert granted == 28
    assert FileAccount(tmp_path, SystemClock()).total(AT.date()) == Decimal("19.6")


def test_forked_child_neither_owns_nor_writes_nor_keeps_the_run(tmp_path: Path) -> None:
    store = FileStore(tmp_path, StillClock())
    run, journal = store.create(started(CLAIM), [], at=AT)
    ask, answer = os.pipe()
    child = os.fork()
    if child == 0:
        verdict = b"wrote"
        try:
            journal.append(2, [line(2, StepStarted("child#1"))])
        except WriteFailed:
            verdict = b"refused"
        journal.close()
        os.write(answer, verdict)
        signal.pause()
        os._exit(0)
    try:
        assert os.read(ask, 100) == b"refused"
        with pytest.raises(RunLocked):
            store.open(run)
        journal.append(2, [line(2, StepStarted("parent#1"))])
        journal.close()
        again = store.open(run)
        assert again.last_seq == 2, "the living child does not hold the lock"
        again.close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ask)
        os.close(answer)


def test_descriptors_of_a_run_are_not_inherited(tmp_path: Path) -> None:
    run, journal = FileStore(tmp_path, StillClock()).create(started(), [], at=AT)
    code = "import os, sys; print([p for p in map(os.path.realpath, map('/proc/self/fd/{}'.format, "
    code += "os.listdir('/proc/self/fd'))) if sys.argv[1] in p])"
    done = subprocess.run(
        [sys.executable, "-c", code, run], capture_output=True, text=True, check=True, close_fds=False
    )
    assert done.stdout.strip() == "[]"
    journal.close()


def test_process_that_ended_has_no_start(children: Children) -> None:
    child = children.start("input()")
    assert process_started(child.pid)
    child.kill()
    assert child.wait() != 0
    assert process_started(child.pid) is None
    assert process_started(os.getpid()) == process()["started"]
