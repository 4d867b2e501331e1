"""Shell commands: a process group of their own, an environment without secrets, an end after their time is over."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.engine.events import Event
from pipeline.records.redaction import holds_key, without_keys

SHELL = "/bin/sh"
#: Of what a command writes, so many bytes are kept: the beginning of stdout, the end of stderr.
MOST_OUTPUT = 8 * 1024 * 1024
_MOST_ERRORS = 64 * 1024
#: Seconds between the polite and the last signal to a group whose time is over.
_GRACE = 2.0
#: Parts of names whose values are secrets; a name that ends in one counts too (OPENAI_APIKEY).
_SECRET = ("KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS")
#: Names by which a value would change what the shell or the loader runs.
_LOADER = re.compile(r"(LD|DYLD|GLIBC|MALLOC|PYTHON|PERL|RUBY|NODE|BASH|GIT)_?.*|ENV|IFS|PS[0-9]|SHELLOPTS|CDPATH|PATH")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    #: Its exit code; minus the signal's number where one ended it.
    exit_code: int
    stdout: str
    #: The end of it.
    stderr: str
    timed_out: bool = False
    #: There was more than is kept.
    cut: bool = False


def run(
    command: str, *, cwd: Path, environment: Mapping[str, str], seconds: float | None = None, text: str | None = None
) -> Done:
    """Run a command to its end; a shell reads it, never this program.

    Args:
        seconds: After these its whole process group is ended.
        text: What it reads from stdin; None: nothing.

    Raises:
        OSError: It could not be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as given:
        given.write((text or "").encode("utf-8", "surrogatepass"))
        given.seek(0)

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [SHELL, "-c", command], cwd=cwd, env=dict(environment), stdin=given, stdout=out, stderr=errors,
                start_new_session=True,
            )  # fmt: skip

        with _LIVING.started(start) as process:
            timed_out = _wait(process, seconds)
        stdout, cut = _beginning(out)
        return Done(process.returncode, stdout, _end(errors), timed_out, cut)


def _wait(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Whether its time was over before its end."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        # Whoever of the group outlived the polite signal, also where the shell itself did not.
        _signal(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class _Living:
    """The process groups that run now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()

    @contextlib.contextmanager
    def started(self, start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
        """A process that `start` starts; known from its first moment to its end."""
        with self._lock:
            process = start()
            self._groups.add(process.pid)
        try:
            yield process
        finally:
            with self._lock:
                self._groups.discard(process.pid)

    def end(self) -> None:
        """End them all."""
        with self._lock:
            groups = list(self._groups)
        for group in groups:
            _signal(group, signal.SIGKILL)


_LIVING = _Living()


def end_all() -> None:
    """End every command that runs: the process leaves at once, and nobody would wait for them."""
    _LIVING.end()


def leave(event: Event) -> None:
    """A listener of a run: where its process leaves at once, so do its commands."""
    if event.type == "leaving":
        end_all()


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without its secrets, and what is added to it."""
    return {**{name: value for name, value in os.environ.items() if not is_secret(name, value)}, **more}


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable is not for commands: by its name, or because it holds one of Anthropic's keys."""
    folded = name.upper()
    parts = re.split(r"[^A-Z0-9]+", folded)
    return (
        folded.startswith("ANTHROPIC_")
        or any(part in _SECRET for part in parts)
        or folded.endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
        or holds_key(value)
    )


def may_be_given(name: str) -> bool:
    """Whether a value of the run may be a command's variable of that name: it stands for nothing else there."""
    return name.isidentifier() and name not in os.environ and not _LOADER.fullmatch(name) and not is_secret(name)


def _beginning(file: IO[bytes]) -> tuple[str, bool]:
    file.seek(0)
    data = file.read(MOST_OUTPUT + 1)
    return _text(data[:MOST_OUTPUT]), len(data) > MOST_OUTPUT


def _end(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _MOST_ERRORS, 0))
    return _text(file.read())


def _text(data: bytes) -> str:
    """What was written, as text that can be recorded."""
    return without_keys(data.decode("utf-8", "replace"))
