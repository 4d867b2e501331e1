"""Shell commands: a process group of their own, an environment without secrets, an end after their time is over.

And the folders they have: that in which they run, and that in which they leave their outcome.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.engine.events import Event
from pipeline.engine.step import StepContext
from pipeline.files import read_regular
from pipeline.formats.attractor.children import CHILD_OF
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import NodeOutcome, failure, from_json
from pipeline.records.redaction import holds_key, without_keys
from pipeline.records.run import bare

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

#: Service: folder in which commands run; not recorded. If it is not given: that of this process.
WORKDIR = "workdir"
#: Option: folder in which commands and agents of run_dot leave their outcome; else each visit has one of its own.
STAGE_DIR = "stage_dir"
#: Attribute of a supervisor, or of its graph.
_CHILD_WORKDIR = "stack.child_workdir"
_DOCUMENTS = ("outcome.json", "status.json")
_MOST_DOCUMENT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    #: Its exit code; minus the signal's number if one ended it.
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
        with _RUNNING_LOCK:
            process = subprocess.Popen(
                [SHELL, "-c", command], cwd=cwd, env=dict(environment), stdin=given, stdout=out, stderr=errors,
                start_new_session=True,
            )  # fmt: skip
            _RUNNING.add(process.pid)
        try:
            timed_out = _wait(process, seconds)
        finally:
            with _RUNNING_LOCK:
                _RUNNING.discard(process.pid)
        out.seek(0)
        data = out.read(MOST_OUTPUT + 1)
        return Done(process.returncode, _text(data[:MOST_OUTPUT]), _end(errors), timed_out, len(data) > MOST_OUTPUT)


#: The process groups that run now: each is known from its first moment to its end.
_RUNNING: set[int] = set()
_RUNNING_LOCK = threading.Lock()


def _wait(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Return whether its time was over before its end."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        # Others of the group may outlive the polite signal, even if the shell itself did not.
        _signal(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def leave(event: Event) -> None:
    """End every command that runs, as a listener of a run, when its process leaves at once."""
    if event.type == "leaving":
        with _RUNNING_LOCK:
            groups = list(_RUNNING)
        for group in groups:
            _signal(group, signal.SIGKILL)


def _end(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _MOST_ERRORS, 0))
    return _text(file.read())


def _text(data: bytes) -> str:
    """Return what was written, as text that can be recorded."""
    return without_keys(data.decode("utf-8", "replace"))


# The environment


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without its secrets, and what is added to it."""
    return {**{name: value for name, value in os.environ.items() if not is_secret(name, value)}, **more}


def is_secret(name: str, value: str = "") -> bool:
    """Return whether a variable is not for commands: by its name, or because it holds one of Anthropic's keys."""
    folded = name.upper()
    parts = re.split(r"[^A-Z0-9]+", folded)
    return (
        folded.startswith("ANTHROPIC_")
        or any(part in _SECRET for part in parts)
        or folded.endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
        or holds_key(value)
    )


def may_be_given(name: str) -> bool:
    """Return whether a value of the run may be a command's variable of that name: it means nothing else there."""
    return name.isidentifier() and name not in os.environ and not _LOADER.fullmatch(name) and not is_secret(name)


# Folders


def workdir(visit: Visit) -> Path:
    """Return where commands run: the run's folder; in a child pipeline the one its supervisor names below that.

    Raises:
        ValueError: It names one that does not lie there.
    """
    place = Path(str(visit.ctx.services.get(WORKDIR) or os.getcwd()))
    supervisor = visit.graph.nodes.get(visit.node.text(CHILD_OF))
    while supervisor is not None:
        if said := (supervisor.text(_CHILD_WORKDIR) or visit.graph.text(_CHILD_WORKDIR)).strip():
            found = (place / said).resolve()
            if not found.is_relative_to(place.resolve()):
                raise ValueError(f"{_CHILD_WORKDIR} {said!r} does not lie below {place}")
            return found
        supervisor = visit.graph.nodes.get(supervisor.text(CHILD_OF))
    return place


def own_name(ctx: StepContext) -> str:
    """Return what a visit's own part of the named folder is called; "": it has the folder itself, alone."""
    return bare(ctx.path).replace("/", "_") if ctx.place.node.attributes.get("fan") else ""


class OutcomeFolder:
    """The folder in which a visit leaves its outcome.json: fresh, so that no earlier one is taken for it.

    A visit alone has the folder that was named; branches that run at once have one each in it.
    """

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        #: The folder of all branches.
        self._shared = shared
        self._before = _marks(shared)
        folder.mkdir(parents=True, exist_ok=True)
        for name in _DOCUMENTS:
            (folder / name).unlink(missing_ok=True)

    @classmethod
    @contextlib.contextmanager
    def of(cls, ctx: StepContext) -> Iterator[OutcomeFolder]:
        """Return the folder of a visit, in the one that was named (stage_dir) or for this visit only."""
        if given := ctx.options.get(STAGE_DIR):
            shared = Path(str(given)).absolute()
            yield cls(shared / own_name(ctx), shared)
            return
        with tempfile.TemporaryDirectory(prefix="pipeline-", ignore_cleanup_errors=True) as made:
            yield cls(Path(made), Path(made))

    def variables(self, node: str) -> dict[str, str]:
        """Return what a command may know of its place."""
        return {"PIPELINE_NODE": node, "PIPELINE_NODE_DIR": str(self.folder), "ATTRACTOR_STAGE_DIR": str(self.folder)}

    def read(self) -> NodeOutcome | None:
        """Return the outcome that was left, None if none was.

        One that was left beside a branch's own folder fails it: it may be any branch's.
        """
        for name in _DOCUMENTS:
            path = self.folder / name
            if path.is_symlink() or not path.is_file():
                continue
            with contextlib.suppress(OSError):
                data = read_regular(path, _MOST_DOCUMENT)
                if len(data) > _MOST_DOCUMENT:
                    return failure(f"{name} is larger than {_MOST_DOCUMENT} bytes.", "validation")
                try:
                    return from_json(json.loads(data), name)
                except (ValueError, RecursionError):
                    return failure(f"{name} is not JSON.", "validation")
        if self._shared == self.folder or _marks(self._shared) == self._before:
            return None
        return failure(
            f"An outcome was left in {self._shared}, where it may be any branch's; branches that run at once leave "
            "theirs in $ATTRACTOR_STAGE_DIR, which is another folder for each.", "config",
        )  # fmt: skip


def _marks(folder: Path) -> list[tuple[int, int] | None]:
    """Return inode and time of each document in a folder; None if it is not there."""
    found: list[tuple[int, int] | None] = []
    for name in _DOCUMENTS:
        try:
            there = (folder / name).stat()
            found.append((there.st_ino, there.st_mtime_ns))
        except OSError:
            found.append(None)
    return found
