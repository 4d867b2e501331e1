"""INT and a pipe nobody reads: what is in flight is kept, the way on is said, the second signal is obeyed at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.records.kinds import RunEnded
from pipeline.store.files import FileStore
from pipeline.store.reader import load, records
from tests.acceptance.killing import Course, Starter
from tests.documents import ROOT
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer, task_data

CLOCK = SystemClock()

#: Interrupts itself while a call is in flight; its display interrupts it once more, in the middle of being told.
HASTY = """
import os, signal, sys, threading
from pipeline.clock import SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import step
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.store.files import FileStore

def answer(request):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(120)
    return "late"

def listen(event):
    print(event.type, flush=True)
    if event.type == "stopping":
        os.kill(os.getpid(), signal.SIGINT)
        if sys.argv[2] == "stuck":
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(120)

@step()
def go(ctx):
    return {"text": ctx.ask(Request("scripted", [Message("user", "x")])).text}

store = FileStore(sys.argv[1], SystemClock())
Pipeline("hasty", [go]).run(store=store, model=ScriptedModel(answer), listener=listen)
"""

#: A command line that is interrupted in a step, and gets one more signal (argv 4) at a moment (argv 3) after its end.
ENDED = """
import atexit, os, signal, sys
import pipeline.cli.results
from pipeline.cli.main import main

moment, number = sys.argv[3], int(sys.argv[4])
def again():
    os.kill(os.getpid(), number)
if moment == "exit":
    atexit.register(again)
if moment == "said":
    warn = pipeline.cli.results.warn
    def warn_and_signal(text):
        warn(text)
        again()
    pipeline.cli.results.warn = warn_and_signal
sys.argv[1:] = ["run", sys.argv[1] + ":PIPELINE", "--store", "files:" + sys.argv[2], "--yes"]
code = main()
if moment == "returned":
    again()
sys.exit(code)
"""
#: A command without a run that is interrupted, and gets one more signal (argv 1) once it has said so.
LISTING = """
import os, sys
import pipeline.cli.main

def interrupted(arguments):
    raise KeyboardInterrupt
pipeline.cli.main._run = interrupted
number, sys.argv[1:] = int(sys.argv[1]), ["list"]
code = pipeline.cli.main.main()
os.kill(os.getpid(), number)
sys.exit(code)
"""
#: The pipeline that is interrupted in a step.
INTERRUPTED = """
import os, signal
from pipeline import Pipeline, step

@step()
def first(ctx):
    os.kill(os.getpid(), signal.SIGINT)
    ctx._running.stop._event.wait(100)
    return {}

@step()
def second(ctx):
    return {}

PIPELINE = Pipeline("interrupted", [first, second])
"""


class Gate:
    """Answers as the author of lessons; the calls for lessons after the first one wait until it opens."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._waiting = -1
        self._more = threading.Condition()

    def __call__(self, body: Mapping[str, Any], fault: str) -> str:
        if task_data(body).get("kind") == "lesson":
            with self._more:
                self._waiting += 1
                first = self._waiting == 0
                self._more.notify_all()
            if not first:
                self.open.wait(100)
        return answer(body, fault)

    def wait_for(self, number: int) -> None:
        """Return when so many calls wait."""
        with self._more:
            assert self._more.wait_for(lambda: self._waiting >= number, 100)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


@pytest.fixture
def course(tmp_path: Path, starter: Starter, gate: Gate) -> Iterator[Course]:
    with BillingServer(responder=gate) as server:
        yield Course(tmp_path, server, starter)


def outside() -> dict[str, str]:
    """Return the environment of a start from any folder, without what measures coverage."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return {**kept, "PYTHONPATH": str(ROOT)}


def begin(made: Course) -> int:
    """A course of six lessons with plain progress; the pid."""
    return made.begin("--subject", "maths", "--level", "n5", "--lessons", "6", "--concurrency", "3", "--json")


def said(made: Course, word: str) -> None:
    """Return when the program has said it."""
    for _ in range(30_000):
        if word in made.log():
            return
        CLOCK.wait(threading.Event(), 0.01)
    raise AssertionError(f"{word!r} was not said:\n{made.log()}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_first_signal_starts_nothing_more_and_records_what_is_in_flight(
    course: Course, gate: Gate, number: int
) -> None:
    pid = begin(course)
    gate.wait_for(3)
    os.kill(pid, number)
    said(course, '"stopping"')
    asked = course.server.bill.requests
    gate.open.set()
    assert course.starter.wait() == 130
    assert course.server.bill.requests == asked, "nothing was started after the signal"
    (run,) = course.runs()
    state = load(course.store, run)
    assert (state.status, state.detail, dict(state.open_calls)) == ("in_progress", "interrupted", {})
    assert isinstance(list(records(course.store, run))[-1].fact, RunEnded)
    last = [line.split(":")[0] for line in course.log().splitlines()[-3:]]
    assert last == ["Stopped", "Saved", "Resume"]
    assert f"--resume {run}" in course.log().splitlines()[-1]
    course.begin("--resume", run)
    assert course.starter.wait() == 0, course.log()
    assert int(course.server.bill.to_json()["repeated"]) == 0


def test_second_signal_leaves_at_once_with_a_journal_to_go_on_from(course: Course, gate: Gate) -> None:
    pid = begin(course)
    gate.wait_for(3)
    os.kill(pid, signal.SIGINT)
    said(course, '"stopping"')
    os.kill(pid, signal.SIGINT)
    assert course.starter.wait() == 130
    (run,) = course.runs()
    assert f"--resume {run}" in course.log()
    assert len(load(course.store, run).open_calls) == 3
    gate.open.set()
    course.begin("--resume", run)
    assert course.starter.wait() == 0, course.log()
    assert int(course.server.bill.to_json()["repeated"]) == 3


@pytest.mark.parametrize("display", ["quick", "stuck"])
def test_second_signal_is_obeyed_although_the_first_is_still_being_told(tmp_path: Path, display: str) -> None:
    command = [sys.executable, "-c", HASTY, str(tmp_path / "runs"), display]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (130, "")
    store = FileStore(tmp_path / "runs", CLOCK)
    (head,) = store.heads()
    assert len(load(store, head.run_id).open_calls) == 1


@pytest.mark.parametrize(
    ("moment", "number"), [("said", signal.SIGTERM), ("returned", signal.SIGINT), ("exit", signal.SIGHUP)]
)
def test_signal_after_the_run_was_stopped_does_not_change_the_exit_code(
    tmp_path: Path, moment: str, number: int
) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    command = [sys.executable, "-c", ENDED, str(tmp_path / "interrupted.py"), str(tmp_path / "runs"), moment]
    done = subprocess.run([*command, str(int(number))], cwd=ROOT, capture_output=True, timeout=300, check=False)
    assert done.returncode == 130, done.stderr
    assert b"Stopped: Interrupted (SIGINT)." in done.stderr
    assert b"Traceback" not in done.stderr


def test_signal_after_an_interrupted_command_does_not_change_the_exit_code() -> None:
    command = [sys.executable, "-c", LISTING, str(int(signal.SIGHUP))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


def test_signal_before_there_is_a_run_ends_the_command_with_130(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "pipeline", "lessons", "--subject", "maths", "--level", "n5", "--yes"]
    command += ["--store", f"files:{tmp_path}/runs", "--out", str(tmp_path / "site")]
    # A provider that takes the question for the model and never answers.
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(300)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        env = {**outside(), "ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": url}
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with process, server.accept()[0]:
            process.send_signal(signal.SIGTERM)
            told = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 130, told
    assert told.endswith("Stopped.\n")
    assert "Traceback" not in told
    assert list(FileStore(tmp_path / "runs", CLOCK).heads()) == []


def test_hangup_that_was_ignored_at_the_start_stops_no_run(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.replace("SIGINT", "SIGHUP").replace("(100)", "(0)"))
    command = ["nohup", sys.executable, "-P", "-m", "pipeline", "run", str(tmp_path / "interrupted.py:PIPELINE")]
    command += ["--store", f"files:{tmp_path}/runs"]
    done = subprocess.run(command, env=outside(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_reader_that_went_away_does_not_stop_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "pipeline", "lessons", "--subject", "maths", "--level", "n5"]
    command += ["--lessons", "2", "--store", f"files:{tmp_path}/runs", "--out", str(tmp_path / "site")]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, cwd=tmp_path, env=outside(), stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    (head,) = FileStore(tmp_path / "runs", CLOCK).heads()
    assert head.document["status"] == "completed"
    assert (tmp_path / "site" / "course_c84775-draft" / "index.html").exists()
