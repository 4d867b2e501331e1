"""A small paid run, and a process that forks one at a time and lets it die at a chosen system call.

Reads one JSON object a line ({"home", "at", "how", "concurrency"}) and answers {"status", "calls"}: the exit
code and how many calls of the disk were made.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from pipeline.cost.prices import PriceBook
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.store.files import FileStore
from pipeline.testing import FakeClock
from tests.faulty_disk import LazyDisk

MODEL = "claude-sonnet-5-5"
ITEMS = ("a", "b", "c")
#: Exit code of a run that died where it was told to.
DIED = 77


def ask(text: str) -> Request:
    return Request(MODEL, [Message("user", text)], max_tokens=20_000)


def answer(request: Request) -> str:
    """The same reply to the same question; those to "draft b" are too long for a record."""
    text = request.messages[0].text
    return text.upper() * (8000 if text == "draft b" else 1)


@step(saves=("plan",))
def plan(ctx: StepContext) -> Outcome:
    text = ctx.ask(ask("plan")).text
    ctx.save("plan", {"text": text})
    return Outcome({"plan": text}, context={"planned": True})


@step()
def write(ctx: StepContext) -> Mapping[str, Any]:
    def one(ctx: StepContext, item: str) -> str:
        draft = ctx.ask(ask(f"draft {item}")).text
        return ctx.ask(ask(f"check {item}")).text + draft

    parts = list(ctx.map("part", ITEMS, one, key=str))
    return {"lengths": [len(part) for part in parts], "planned": ctx.context["planned"]}


@step()
def bind(ctx: StepContext) -> Mapping[str, Any]:
    return {"book": [ctx.load("plan")["text"], *ctx.outputs["write"]["lengths"]]}


BOOK = Pipeline("book", [plan, write, bind])


class DyingDisk(LazyDisk):
    """Ends the process before or after the n-th call, or in the middle of the n-th write; 0: never."""

    def __init__(self, at: int = 0, how: str = "before") -> None:
        self.calls = 0
        self._at = at
        self._how = how
        self._lock = threading.Lock()

    def _call(self, act: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        if self._how == "middle" and half is None:
            return act()
        with self._lock:
            self.calls += 1
            mine = self.calls == self._at
        if not mine:
            return act()
        if half is not None and self._how == "middle":
            half()
        elif self._how == "after":
            act()
        os._exit(DIED)

    def open(self, path: Path, flags: int) -> int:
        return int(self._call(lambda: super(DyingDisk, self).open(path, flags)))

    def write(self, fd: int, data: bytes) -> int:
        half = data[: len(data) // 2]
        return int(self._call(lambda: super(DyingDisk, self).write(fd, data), lambda: os.write(fd, half)))

    def sync(self, fd: int) -> None:
        self._call(lambda: None)

    def replace(self, source: Path, target: Path) -> None:
        self._call(lambda: super(DyingDisk, self).replace(source, target))

    def sync_folder(self, path: Path) -> None:
        self._call(lambda: None)

    def make_folder(self, path: Path) -> None:
        self._call(lambda: super(DyingDisk, self).make_folder(path))

    def truncate(self, fd: int, size: int) -> None:
        self._call(lambda: super(DyingDisk, self).truncate(fd, size))


def go(home: Path, disk: LazyDisk, concurrency: int) -> RunResult:
    """Start the run, or resume it where there is one; what was asked is noted in `asked`."""
    clock = FakeClock()
    store = FileStore(home / "runs", clock, disk=disk)
    noted = os.open(home / "asked", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def asked(request: Request) -> str:
        os.write(noted, request.messages[0].text.encode() + b"\n")
        return answer(request)

    model = ScriptedModel(asked, model_id=MODEL, paid=True)
    options = {"concurrency": concurrency, "max_cost_usd": "5"}
    runs = [head.run_id for head in store.heads()]
    try:
        if runs:
            return BOOK.resume(runs[0], store=store, model=model, options=options, clock=clock)
        return BOOK.run(store=store, model=model, options=options, clock=clock)
    finally:
        os.close(noted)


def child(order: Mapping[str, Any], answers: int) -> None:
    """One run in its own process; never returns."""
    disk = DyingDisk(order["at"], order["how"])
    code = 70
    try:
        code = 0 if go(Path(order["home"]), disk, order["concurrency"]).status == "completed" else 71
        os.write(answers, str(disk.calls).encode())
    finally:
        os._exit(code)


def main() -> None:
    """Fork a run for each line; what takes long to load is loaded before."""
    PriceBook().worst(1, 1, model=MODEL, at=FakeClock().now())
    for line in sys.stdin:
        read, write = os.pipe()
        started = os.fork()
        if started == 0:
            child(json.loads(line), write)
        os.close(write)
        calls = os.read(read, 100)
        os.close(read)
        _, status = os.waitpid(started, 0)
        sys.stdout.write(json.dumps({"status": os.waitstatus_to_exitcode(status), "calls": int(calls or 0)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
