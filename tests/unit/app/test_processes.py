"""Runs as processes of their own: named, found again by a second click, alive without the server, stopped, resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.app import processes
from pipeline.app.processes import Started, resume, start, stop
from pipeline.app.run_list import row_of
from pipeline.app.stores import head_of, open_store
from pipeline.errors import ConfigError, PipelineError, RunNotFound
from pipeline.store.base import Store
from pipeline.store.owner import process
from tests.documents import ROOT
from tests.waiting_pipeline import SLOW


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[list[str]]:
    """The arguments that start a run which waits until `release` is called, at the latest at the test's end."""
    (tmp_path / "slow.py").write_text(SLOW)
    yield ["run", f"{tmp_path / 'slow.py'}:PIPELINE", "--yes"]
    (tmp_path / "go").touch()
    for begun, _ in processes._living.values():
        begun.wait(120)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"files:{tmp_path / 'runs'}"


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never came true")


def status(place: Store, run: str) -> str:
    return row_of(head_of(place, run)).shown_status


def release(tmp_path: Path) -> None:
    (tmp_path / "go").touch()


def until_told(begun: Started, event: str) -> None:
    """Wait until a process tells an event: stopped before its first step it is gone, let go too soon it completes."""
    assert begun.output
    told = begun.output / processes.EVENTS
    until(lambda: f'"{event}"' in told.read_text())


def test_process_names_its_run_and_outlives_who_started_it(tmp_path: Path, url: str, slow: list[str]) -> None:
    text = f"from pipeline.app.processes import start\nprint(start({slow!r}, {url!r}).run, flush=True)"
    server = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT)
    run, place = server.stdout.strip(), open_store(url)
    assert status(place, run) == "in_progress"
    release(tmp_path)
    until(lambda: status(place, run) == "completed")
    (output,) = (tmp_path / "runs.output").iterdir()
    assert output.stat().st_mode & 0o077 == 0
    assert run in (output / processes.EVENTS).read_text()


def test_double_click_starts_one_process(url: str, slow: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: start(slow, url), range(2))
    assert first == second
    assert first.run
    assert len(list(open_store(url).heads())) == 1


def test_error_of_the_first_seconds_comes_back_in_the_words_of_the_command(url: str) -> None:
    with pytest.raises(PipelineError) as found:
        start(["lessons", "--resume", "20260109_143022", "--yes"], url)
    assert found.value.code == "run_not_found"
    assert "20260109_143022" in found.value.message
    assert "list" in found.value.hint
    with pytest.raises(PipelineError) as found:
        start(["lessons", "--subject", "physics", "--level", "higher", "--lessons", "1000"], url)
    assert "--lessons is 1000" in found.value.message
    assert found.value.data["exit_code"] == 2


def test_store_with_a_password_is_never_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def popen(words: list[str], **more: Any) -> Any:
        seen.update(words=words, env=more["env"])
        raise ConnectionResetError

    monkeypatch.setattr("subprocess.Popen", popen)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    url = "postgresql://me:not-a-real-one@127.0.0.1/runs"
    with pytest.raises(ConnectionResetError):
        start(["lessons", "--resume", "x"], url)
    assert "not-a-real-one" not in " ".join(seen["words"])
    assert seen["env"]["PIPELINE_STORE"] == url


def test_files_are_kept_beside_the_output(tmp_path: Path, url: str) -> None:
    with pytest.raises(PipelineError) as found:
        start(["courses", "courses.csv", "--yes"], url, files={"courses.csv": "subject,level\nphysics,none\n"})
    (output,) = (tmp_path / "runs.output").iterdir()
    assert (output / "courses.csv").read_text().startswith("subject")
    assert found.value.data["lines"]


def test_stop_is_ctrl_c_once_and_resume_goes_on_in_a_process_of_its_own(
    tmp_path: Path, url: str, slow: list[str]
) -> None:
    started, place = start(slow, url), open_store(url)
    run = started.run
    until_told(started, "step_started")
    assert stop(place, run) == stop(place, run) == started.pid
    until_told(started, "stopping")
    release(tmp_path)
    until(lambda: status(place, run) == "interrupted")
    assert not row_of(head_of(place, run)).gone
    until(lambda: not place.holder(run))
    with pytest.raises(PipelineError) as found:
        stop(place, run)
    assert found.value.code == "run_not_running"
    again = resume(place, url, run)
    assert again.run == run
    assert again.pid != started.pid
    until(lambda: status(place, run) == "completed")


def test_resume_does_not_take_a_process_that_is_about_to_end_for_the_same_click(
    tmp_path: Path, url: str, slow: list[str]
) -> None:
    begun, place = start(slow, url), open_store(url)
    os.kill(begun.pid, signal.SIGKILL)
    until(lambda: not place.holder(begun.run))
    (tmp_path / "linger").touch()
    first = resume(place, url, begun.run)
    until_told(first, "step_started")
    assert stop(place, begun.run) == first.pid
    until_told(first, "stopping")
    release(tmp_path)
    until(lambda: not place.holder(begun.run))
    assert status(place, begun.run) == "interrupted"
    second = resume(place, url, begun.run)
    assert (second.run, second.pid != first.pid) == (begun.run, True)
    until(lambda: status(place, begun.run) == "completed")


def test_process_that_ended_is_waited_for(url: str, slow: list[str]) -> None:
    pid = start(slow, url).pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_killed_owner_is_seen_and_its_run_resumed_once(tmp_path: Path, url: str, slow: list[str]) -> None:
    started, place = start(slow, url), open_store(url)
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: status(place, started.run) == "interrupted")
    assert row_of(head_of(place, started.run)).gone
    resumed = resume(place, url, started.run)
    # Whoever asks while it is owned gets its owner.
    assert resume(place, url, started.run) == Started(resumed.pid, started.run)
    release(tmp_path)
    until(lambda: status(place, started.run) == "completed")


def test_other_processes_are_never_signalled(url: str, slow: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started, place = start(slow, url), open_store(url)
    holder = place.holder(started.run)

    def refused(**change: Any) -> str:
        def says(run: str) -> Mapping[str, Any]:
            return {**holder, **change}

        monkeypatch.setattr(place, "holder", says)
        with pytest.raises(PipelineError) as found:
            stop(place, started.run)
        return found.value.code

    assert refused(host="elsewhere") == "owner_elsewhere"
    assert refused(space="pid:[1]") == "owner_elsewhere"
    assert refused(started="1") == "owner_elsewhere"
    assert refused(**process()) == "run_busy"
    assert status(place, started.run) == "in_progress"


def test_run_that_is_not_there_is_neither_stopped_nor_resumed(url: str) -> None:
    place = open_store(url)
    with pytest.raises(RunNotFound):
        stop(place, "20260109_143022")
    with pytest.raises(RunNotFound):
        resume(place, url, "20260109_143022")


def test_resume_asks_for_what_only_a_person_gives(url: str, slow: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started, place = start(slow, url), open_store(url)
    row = row_of(head_of(place, started.run))
    held = {name: getattr(row, name) for name in row.__slots__} | {"owned": False, "needs": "--allow-tools"}
    monkeypatch.setattr(processes, "row_of", lambda head: type(row)(**held))
    with pytest.raises(ConfigError) as found:
        resume(place, url, started.run)
    assert found.value.code == "resume_needs_more"
    assert found.value.data["needs"] == ["--allow-tools"]
