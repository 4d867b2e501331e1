"""Runs as processes of their own: started, resumed and stopped for a caller that they outlive.

A process is the command line itself (`python -m pipeline …`) in a session of the kernel's own: neither the end of the
server nor Ctrl-C on its terminal reaches it. What it prints is kept in a folder beside the store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import environment
from pipeline.app.run_list import resume_arguments, row_of
from pipeline.app.stores import head_of
from pipeline.clock import SystemClock
from pipeline.errors import PipelineError
from pipeline.files import parse_json
from pipeline.store.address import parse_store_url
from pipeline.store.base import Store
from pipeline.store.disk import FOLDER_MODE
from pipeline.store.owner import alive

#: What a process prints, by stream; in the folder of its output.
EVENTS, ERRORS = "output.jsonl", "errors.txt"
#: How long a new process may take to name its run, seconds; how often it is looked at.
_WAIT_SECONDS, _LOOK_SECONDS = 60.0, 0.05
#: Outputs that are kept beside a store, the newest.
_KEPT = 100
#: Two stops of one process within so many seconds are one: a second signal would end what the first lets finish.
_AGAIN_SECONDS = 3.0
#: Lines of an error that are shown, and the most that is read of what a process printed.
_LINES, _MOST_BYTES = 3, 1 << 20

_clock = SystemClock()


@dataclass(frozen=True, slots=True)
class Started:
    """A process that works on a run."""

    pid: int
    #: The run's id; "": the process has not told it yet.
    run: str
    #: The folder with what it prints; None: another program started it.
    output: Path | None = None


#: Processes that this server started, by what was asked: a second click finds the first one's.
_living: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
_lock = threading.Lock()
#: When a process was last told to stop: (pid, its start) → seconds.
_stopped: dict[tuple[int, str], float] = {}


def start(
    arguments: Sequence[str], store: str | None, *, files: Mapping[str, str] | None = None,
    leaves: Callable[[Path], bool] = lambda output: False,
) -> Started:  # fmt: skip
    """Start the command line as a process of its own, or find the one that the same click before has started.

    Args:
        arguments: Of the program, without `--json`, which is added; nothing secret.
        store: The store's URL, which may hold a password: it goes through the environment.
        files: Name → text of files that are kept beside the output; an argument that equals a name becomes its path.
        leaves: Whether the one that was found is about to end, by the folder of its output: then it is not returned.

    Raises:
        PipelineError: It ended before it named a run; the message, hint and code are its own, data["lines"] all of it.
    """
    files = files or {}
    asked = json.dumps([list(arguments), store, dict(files)])
    with _lock:
        for name in [name for name, (process, _) in _living.items() if process.poll() is not None]:
            del _living[name]
        found = _living.get(asked)
        process, folder = found if found and not leaves(found[1]) else _begin(arguments, store, files)
        _living[asked] = process, folder
    return _told(process, folder)


def resume(place: Store, store: str | None, run: str, more: Sequence[str] = ()) -> Started:
    """Resume a run in a process of its own; where a living process owns it, that one is returned.

    Args:
        store: The URL of `place`.
        more: Options of this start, such as a higher ceiling.

    Raises:
        RunNotFound: No such run.
        ConfigError: As app.run_list.resume_arguments.
        PipelineError: As `start`.
    """
    row = row_of(head_of(place, run))
    if row.owned:
        return Started(int(place.holder(run).get("pid") or 0), run)

    def leaves(output: Path) -> bool:
        # It has named the run, so it owned it: in this order.
        return bool(_run_of(_objects(output / EVENTS))) and not head_of(place, run).owned

    return start(resume_arguments(row, more), store, leaves=leaves)


def stop(place: Store, run: str) -> int:
    """Tell the process that owns a run to stop, as Ctrl-C does; its pid.

    What is in flight ends, everything made is kept. Nothing is cancelled at the provider.

    Raises:
        RunNotFound: No such run.
        PipelineError: No process owns it, or one that cannot be reached from here.
    """
    holder = place.holder(run)
    if not holder:
        raise PipelineError(f"Run {run} is not running.", code="run_not_running", run=run)
    pid, began = int(holder.get("pid") or 0), str(holder.get("started"))
    text = f"Run {run} belongs to process {pid} on {holder.get('host')}, which cannot be reached from here."
    far = PipelineError(text, code="owner_elsewhere", hint="Stop it there, with Ctrl-C.", run=run)
    if pid == os.getpid():
        raise PipelineError(f"Run {run} is being written to from this page.", code="run_busy", hint="Try again.")
    now = _clock.monotonic()
    with _lock:
        if now - _stopped.get((pid, began), -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return pid
        try:
            _interrupt(pid, holder)
        except (ProcessLookupError, PermissionError):
            raise far from None
        _stopped[pid, began] = now
        for old in [key for key, at in _stopped.items() if now - at > _AGAIN_SECONDS]:
            del _stopped[old]
    return pid


def _interrupt(pid: int, holder: Mapping[str, Any]) -> None:
    """Send SIGINT to the process that a lock or lease names, and to no other that has its number by now.

    Raises:
        ProcessLookupError: It is not on this machine, or has ended.
        PermissionError: It belongs to another user.
    """
    if not hasattr(os, "pidfd_open"):
        if not alive(holder, otherwise=False):
            raise ProcessLookupError
        os.kill(pid, signal.SIGINT)
        return
    # Held before it is looked at: the number cannot pass to another process in between.
    handle = os.pidfd_open(pid)
    try:
        if not alive(holder, otherwise=False):
            raise ProcessLookupError
        signal.pidfd_send_signal(handle, signal.SIGINT)
    finally:
        os.close(handle)


def _begin(
    arguments: Sequence[str], store: str | None, files: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Path]:
    folder = _output_folder(store, arguments[0])
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    words = [str(folder / word) if word in files else word for word in arguments]
    # Wherever the server stands, its child is the same program.
    home = str(Path(environment.__file__).parent.parent)
    path = os.pathsep.join(part for part in (home, os.environ.get("PYTHONPATH")) if part)
    variables = {**os.environ, "PYTHONPATH": path, **({str(environment.VARIABLES["store"]): store} if store else {})}
    with open(folder / EVENTS, "ab") as events, open(folder / ERRORS, "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline", *words, "--json"],
            stdin=subprocess.DEVNULL, stdout=events, stderr=errors, env=variables, start_new_session=True,
        )  # fmt: skip
    # Ended processes are waited for, or they would stay in the system's table as long as the server lives.
    threading.Thread(target=process.wait, name="process", daemon=True).start()
    return process, folder


def _told(process: subprocess.Popen[bytes], folder: Path) -> Started:
    """Wait until a process names its run, or ends.

    Raises:
        PipelineError: It ended, with an error, and named none.
    """
    until = _clock.monotonic() + _WAIT_SECONDS
    while True:
        ended = process.poll()
        said = list(_objects(folder / EVENTS))
        run = _run_of(said)
        if run or ended == 0 or (ended is None and _clock.monotonic() > until):
            return Started(process.pid, run, folder)
        if ended is not None:
            raise _failure(ended, said, _read(folder / ERRORS))
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_SECONDS)


def _run_of(said: Iterable[Mapping[str, Any]]) -> str:
    return next((str(each["run"]) for each in said if each.get("run")), "")


def _failure(code: int, said: Sequence[Mapping[str, Any]], printed: str) -> PipelineError:
    """Return what a process ended with, in its own words."""
    lines = [line for line in printed.splitlines() if line.strip()][-_LINES:]
    errors = [each["error"] for each in said if isinstance(each.get("error"), dict)]
    error: Mapping[str, Any] = errors[-1] if errors else {}
    first = lines[0].removeprefix("Error: ") if lines else f"The process ended with exit code {code}."
    return PipelineError(
        str(error.get("message") or first), code=str(error.get("code") or "process_failed"),
        hint=str(error.get("hint") or " ".join(lines[1:]).removeprefix("Hint: ")), lines=lines, exit_code=code,
    )  # fmt: skip


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of the whole lines of a file."""
    for line in _read(file).split("\n")[:-1]:
        with suppress(ValueError):
            found = parse_json(line.encode())
            if isinstance(found, dict):
                yield found


def _read(file: Path) -> str:
    with open(file, "rb") as source:
        return source.read(_MOST_BYTES).decode(errors="replace")


def _output_folder(store: str | None, command: str) -> Path:
    """Make a folder for what one process prints: beside a folder of runs, else in the user's temporary folder."""
    runs = parse_store_url(store or environment.default_store()).folder
    name = f"{_clock.now():%Y%m%d_%H%M%S}-{command}-"
    if runs is not None:
        beside = runs.with_name(f"{runs.name}.output")
        with suppress(OSError):
            beside.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=name, dir=beside))
            _forget_old(beside)
            return made
    return Path(tempfile.mkdtemp(prefix=f"pipeline-{name}"))


def _forget_old(beside: Path) -> None:
    """Remove all outputs but the newest; a process that still prints into one goes on without being heard."""
    for name in sorted(os.listdir(beside))[:-_KEPT]:
        shutil.rmtree(beside / name, ignore_errors=True)
