"""What tests of executors share: a model that counts, bodies with names, executors that lose what they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline import Pipeline, Reply, Request, RunResult, StepContext, TaskFailure, open_store, step
from pipeline.clock import SystemClock
from pipeline.errors import TaskRejected
from pipeline.llm.base import ModelInfo
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from tests.unit.engine.saying import MODEL, worst_of
from tests.unit.engine.saying import ask as asking

#: What the model was asked, in order; what it does instead of answering.
ASKED: list[str] = []
TROUBLE: dict[str, list[BaseException]] = {}
#: What each answer says of limits.
LIMITS: dict[str, float] = {}
#: Called with the question before it is answered, and after.
BEFORE: list[Callable[[str], None]] = []
AFTER: list[Callable[[str], None]] = []


class Counting:
    """A model that knows what it was asked, whichever copy of it was."""

    def check(self) -> ModelInfo:
        return ModelInfo(MODEL, paid=True)

    def complete(self, request: Request) -> Reply:
        text = request.messages[-1].text
        ASKED.append(text)
        for look in BEFORE:
            look(text)
        if TROUBLE.get(text):
            raise TROUBLE[text].pop(0)
        for look in AFTER:
            look(text)
        usage = {"input_tokens": 10, "output_tokens": 100}
        return Reply(f"<{text}>", "end_turn", usage=usage, model=MODEL, limits=dict(LIMITS))

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def _forget() -> None:
    for known in (ASKED, LIMITS, TROUBLE, BEFORE, AFTER):
        known.clear()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store", SystemClock())


@pytest.fixture(params=["files", "sqlite"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that the workers open for themselves."""
    return open_store(f"{request.param}:{tmp_path / 'runs'}")


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


class Watching(ThreadPoolExecutor):
    """Remembers what it was given, and how much of it was out at most."""

    def __init__(self, workers: int = 2) -> None:
        super().__init__(workers)
        self.specs: list[dict[str, Any]] = []
        self.out: list[Future[Any]] = []
        self.most = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.specs.append(args[0])
        self.out = [*(each for each in self.out if not each.done()), super().submit(fn, *args, **kwargs)]
        self.most = max(self.most, len(self.out))
        return self.out[-1]


class Losing(ThreadPoolExecutor):
    """Loses the answers to some of what it was given, after the work was done; or does not begin it."""

    def __init__(self, lost: Callable[[str], bool] = lambda task: True, *, begun: bool = True) -> None:
        super().__init__(1)
        self._lost = lost
        self._begun = begun

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        lost = self._lost(args[0]["task"])

        def work() -> Any:
            answer = fn(*args, **kwargs) if self._begun or not lost else None
            if lost:
                raise ConnectionResetError("the worker is gone")
            return answer

        return super().submit(work)


class Reviving(ThreadPoolExecutor):
    """Gives a task whose worker has died to another one, a few times."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        def work() -> Any:
            for _ in range(3):
                with suppress(Dead):
                    return fn(*args, **kwargs)
            raise ConnectionResetError("every worker is gone")

        return super().submit(work)


class Idle(ThreadPoolExecutor):
    """Begins the first of what it is given; for the rest it has no worker."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(fn, *args, **kwargs) if args[0]["task"].endswith("/0") else Future()


class Dead(BaseException):
    """The worker is no more."""


def dying(calls: int) -> Callable[[str], None]:
    """Dies over the call after so many."""

    def look(text: str) -> None:
        if len(ASKED) > calls:
            ASKED.pop()
            raise Dead

    return look


def ask(text: str, tokens: int = 100) -> Request:
    return asking(text, MODEL, max_tokens=tokens)


#: The worst case of one call.
WORST = worst_of(ask("second 0"), SystemClock().now())


@dataclass
class Town:
    """An item that is more than text."""

    name: str
    visits: list[int] = field(default_factory=list)


def write_of(ctx: StepContext, town: Town) -> Town:
    """Ask of a town; the item is the body's own."""
    town.visits.append(len(ctx.ask(asking(town.name, MODEL)).text))
    return town


def write(ctx: StepContext, item: int) -> dict[str, Any]:
    first = ctx.ask(ask(f"first {item} for {ctx.params['who']}")).text
    return {"first": first, "second": ctx.ask(ask(f"second {item}")).text, "attempt": ctx.attempt}


def write_less(ctx: StepContext, item: int) -> list[str]:
    """The first item may cost far more than the others."""
    return [ctx.ask(ask(f"{turn} {item}", 100 if item else 5000)).text for turn in ("first", "second")]


def write_for(whom: dict[str, str], ctx: StepContext, item: int) -> str:
    """A long value, made with what was given before."""
    return ctx.ask(ask(f"{item} for {whom['name']}")).text * 500


def write_three(ctx: StepContext, item: int) -> list[str]:
    return [*ctx.map("inner", range(3), ask_inner, key=str), ctx.task("last", ask_inner, 9)]


def ask_inner(ctx: StepContext, item: int) -> str:
    return ctx.ask(ask(f"inner {ctx.path} {item}")).text


def write_or_reject(ctx: StepContext, item: int) -> str:
    text = ctx.ask(ask(f"draft {item}")).text
    if item == 1:
        raise TaskRejected("not good enough")
    return text


def write_then_look(ctx: StepContext, item: int) -> int:
    """Two answers, then a file that may not be there yet."""
    texts = [ctx.ask(ask(f"{turn} {item}")).text for turn in ("first", "second")]
    return len(texts) + len(Path(ctx.params["who"]).read_text())


def read_much(ctx: StepContext, item: int) -> list[Any]:
    known = [ctx.outputs["plan"]["count"], ctx.load("notes"), ctx.pin("style"), ctx.context["mood"]]
    return [*known, ctx.place.node.id, item]


def use_service(ctx: StepContext, item: int) -> str:
    return str(ctx.services["lock"])


def course(body: Callable[..., Any] = write, count: int = 4, **more: Any) -> Pipeline:
    @step()
    def made(ctx: StepContext) -> dict[str, Any]:
        found = ctx.map("made", range(count), body, key=str, **more)
        return {"all": [row.error if isinstance(row, TaskFailure) else row for row in found]}

    return Pipeline("course", [made])


def run(
    pipeline: Pipeline, store: Store, executor: Executor | None, options: dict[str, Any] | None = None, **more: Any
) -> RunResult:
    options = {"max_cost_usd": None, **(options or {})}
    return pipeline.run({"who": "us"}, store=store, model=Counting(), executor=executor, options=options, **more)


def resume(pipeline: Pipeline, store: Store, first: RunResult, executor: Executor | None, **more: Any) -> RunResult:
    return pipeline.resume(first.run_id, store=store, model=Counting(), executor=executor, **more)
