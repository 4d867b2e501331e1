"""Speed and size of the core, as ratios in one run against a bare append on the same disk.

    python tests/benchmarks/bench.py [NAME ...]

Prints one line a figure: name, measured, goal, ok or MISSED. No test; nothing fails by it.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[2])

from pipeline.clock import SystemClock  # noqa: E402
from pipeline.engine.pipeline import Pipeline  # noqa: E402
from pipeline.engine.step import StepContext, step  # noqa: E402
from pipeline.llm.base import Message, Request  # noqa: E402
from pipeline.llm.script import ScriptedModel  # noqa: E402
from pipeline.store.base import Store  # noqa: E402
from pipeline.store.files import FileStore  # noqa: E402
from pipeline.store.memory import MemoryStore  # noqa: E402
from tests.benchmarks.measure import (  # noqa: E402
    ROOT,
    CountingDisk,
    bare_appends,
    best,
    folder,
    least_cpu,
    run_quietly,
    say,
)

CLOCK = SystemClock()


def chain(count: int, times: list[float], body: Callable[[int], Any] = lambda n: {"n": n}) -> Pipeline:
    def make(number: int) -> Any:
        def run(ctx: StepContext) -> Any:
            times.append(time.perf_counter())
            return body(number)

        return step(f"s{number}")(run)

    return Pipeline("bench", [make(number) for number in range(count)])


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def tenths(values: list[float]) -> float:
    tenth = max(len(values) // 10, 1)
    return statistics.median(values[-tenth:]) / statistics.median(values[:tenth])


#: Every so many steps a body makes as many bare appends: the disk of the same moment, and no sync but its own
#: disturbs a step.
_EVERY = 20


def steps() -> None:
    """A no-op step, durable, against bare appends of 300 bytes made in between."""
    for count in (100, 1000, 10_000):
        with folder() as home:
            bare: list[float] = []
            ends: list[float] = []
            starts: list[float] = []
            syncs: list[int] = []
            disk = CountingDisk()

            def body(
                number: int,
                home: Path = home,
                bare: list[float] = bare,
                ends: list[float] = ends,
                starts: list[float] = starts,
                syncs: list[int] = syncs,
                disk: CountingDisk = disk,
            ) -> Any:
                syncs.append(disk.syncs)
                starts.append(time.perf_counter())
                if number % _EVERY == 0:
                    bare.extend(bare_appends(home, _EVERY))
                ends.append(time.perf_counter())
                return {"n": number}

            chain(count, [], body).run(store=FileStore(home / "s", CLOCK, disk=disk))
            # Not the step after bare appends: it begins where they have left the processor.
            made = [
                begun - ended
                for number, (ended, begun) in enumerate(zip(ends, starts[1:], strict=False))
                if number % _EVERY
            ]
            say(
                f"no-op step / bare append, p50, {count} steps",
                statistics.median(made) / statistics.median(bare),
                2.0,
                "x",
            )
            if count >= 1000:
                say(f"  last tenth / first tenth, over the bare one, {count}", tenths(made) / tenths(bare), 1.2, "x")
            say(f"  syncs a step, {count}", (syncs[-1] - syncs[0]) / (count - 1), 1.0)


def four_steps() -> None:
    """An empty run of four steps against its own syncs."""
    ratios = []
    for _ in range(15):
        with folder() as home:
            disk = CountingDisk()
            pipeline = chain(4, [])
            begun = time.perf_counter()
            pipeline.run(store=FileStore(home / "s", CLOCK, disk=disk))
            ratios.append((time.perf_counter() - begun) / disk.seconds)
    say("empty four-step run / its own syncs, median", statistics.median(ratios), 5.0, "x")


def sizes() -> None:
    """What 1,000 steps of 210 bytes leave on disk; a 5 MB value."""
    with folder() as home:
        run = chain(1000, [], lambda n: {"text": "x" * 200}).run(store=FileStore(home / "s", CLOCK))
        place = home / "s" / run.run_id
        total = sum((place / name).stat().st_size for name in ("journal.jsonl", "checkpoint.json"))
        say("1,000 steps of 210 B: journal + head", total / 1e6, 1.2, "MB")
    with folder() as home:
        times: list[float] = []
        big = os.urandom(2_500_000).hex()
        run = chain(400, times, lambda n: {"v": big} if n == 200 else {"n": n}).run(store=FileStore(home / "s", CLOCK))
        made = gaps(times)
        before, later = statistics.median(made[50:199]), statistics.median(made[220:])
        say("steps after a 5 MB value / before it", later / before, 1.2, "x")
        say("  journal with a 5 MB value", (home / "s" / run.run_id / "journal.jsonl").stat().st_size / 1e6, 0.5, "MB")


def all_to_all() -> None:
    """30 layers of 30 nodes, each with every node of the layer before."""
    names = [[f"n{layer}_{place}" for place in range(30)] for layer in range(30)]
    edges = [("start", name) for name in names[0]]
    edges += [(a, b) for first, second in pairwise(names) for a in first for b in second]
    joins = {name: "all" for layer in names[1:] for name in layer}
    made = [step(name)(lambda ctx: {}) for name in ["start", *(name for layer in names for name in layer)]]
    pipeline = Pipeline("mesh", made, edges=edges, joins=joins)
    begun = time.perf_counter()
    result = pipeline.run(store=MemoryStore(CLOCK))
    assert result.status == "completed", result.error
    say("30 x 30 all-to-all, memory store, a node", (time.perf_counter() - begun) * 1000 / 901, 0.5, "ms")


def fan_out() -> None:
    """200 tasks of 50 ms with 50 threads; then with a slow sync."""
    for slow, goal in ((0.0, 1.15), (0.005, 1.5)):
        best = 9.0
        for _ in range(3):
            with folder() as home:
                spent: list[float] = []

                def go(ctx: StepContext, spent: list[float] = spent) -> Any:
                    begun = time.perf_counter()
                    ctx.map("t", range(200), lambda c, i: time.sleep(0.05), key=str)
                    spent.append(time.perf_counter() - begun)
                    return {}

                store = FileStore(home / "s", CLOCK, disk=CountingDisk(slow))
                Pipeline("fan", [go]).run(store=store, options={"concurrency": 50})
                best = min(best, spent[0] / 0.2)
        say(f"200 tasks of 50 ms, 50 threads, sync + {slow * 1000:.0f} ms / ideal", best, goal, "x")


def many_tasks() -> None:
    """A further save over 1,000 finished tasks; the way of a resume to the first new step."""
    with folder() as home:
        marks: list[float] = []

        def tasks(ctx: StepContext) -> Any:
            ctx.map("t", range(1000), lambda c, i: {"n": i, "text": "x" * 180}, key=str)
            return {}

        def more(ctx: StepContext) -> Any:
            for number in range(200):
                begun = time.perf_counter()
                ctx.task(f"m{number}", lambda c, i: {"text": "x" * 180})
                marks.append(time.perf_counter() - begun)
            return {}

        bare = bare_appends(home, 400)
        Pipeline("many", [tasks, more]).run(store=FileStore(home / "s", CLOCK), options={"concurrency": 1})
        p95 = sorted(marks)[int(len(marks) * 0.95)]
        say("save over 1,000 tasks, P95 / bare append P95", p95 / sorted(bare)[int(len(bare) * 0.95)], 3.0, "x")
    for calls, goal in ((False, 10.0), (True, 100.0)):
        with folder() as home:
            name = f"load + fold 1,000 tasks ({'a' if calls else 'no'} call each) to the first new step"
            say(name, way_to_new_step(FileStore(home / "s", CLOCK), calls=calls) * 1000, goal, "ms")


def way_to_new_step(store: Store, *, calls: bool) -> float:
    """Seconds from taking up a run of 1,000 finished tasks to its first new step, least of fifteen resumes."""
    first: list[float] = []

    def task(ctx: StepContext, number: int) -> Any:
        text = ctx.ask(Request("scripted", [Message("user", f"{number} " + "y" * 500)])).text if calls else "x" * 180
        return {"n": number, "text": text}

    def tasks(ctx: StepContext) -> Any:
        ctx.map("t", range(1000), task, key=str)
        return {}

    def new(ctx: StepContext) -> Any:
        first.append(time.perf_counter())
        ctx.stop("enough")
        return {}

    many = Pipeline("many", [tasks, step("new")(new)])
    model = ScriptedModel(lambda request: "x" * 180)
    run = many.run(store=store, model=model, options={"concurrency": 1, "max_cost_usd": None})
    taken = []
    for _ in range(15):
        begun = time.perf_counter()
        many.resume(run.run_id, store=store, model=model)
        taken.append(first[-1] - begun)
    return min(taken)


def items(count: int = 100_000) -> None:
    """100,000 map items: made, resumed, and the memory for it; in a process of its own."""
    code = f"""
import sys, time, resource; sys.path[0] = {str(ROOT)!r}
from pathlib import Path
from pipeline import Pipeline, open_store, step
made, home = [], sys.argv[1]
def big(ctx):
    values = ctx.map("i", range({count}), lambda c, i: i * 2, key=str)
    return {{"sum": sum(values)}}
stop = [True]
def rest(ctx):
    if stop[0]: ctx.stop("here")
    return {{}}
def again(ctx):
    ctx.map("i", range({count}), lambda c, i: i * 2, key=str)
    if stop[0]: ctx.stop("here")
    return {{}}
pipeline = Pipeline("items", [step("big")(again)])
begun = time.perf_counter(); run = pipeline.run(store=open_store("files:" + home), options={{"concurrency": 1}})
print(time.perf_counter() - begun)
stop[0] = False
begun = time.perf_counter()
r = pipeline.resume(run.run_id, store=open_store("files:" + home), options={{"concurrency": 1}})
assert r.status == "completed", r.error
print(time.perf_counter() - begun)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    with folder() as home:
        out = subprocess.run([sys.executable, "-c", code, str(home / "s")], capture_output=True, text=True, check=True)
        made, resumed, memory = (float(line) for line in out.stdout.split())
        say(f"{count:,} map items: made", made, 15.0, "s")
        say(f"{count:,} map items: resumed", resumed, 2.0, "s")
        say(f"{count:,} map items: memory", memory, 200.0, "MB")


def listing() -> None:
    """The newest 50 of 10,000 runs; filters over all; the list command. CPU time: nothing here waits for a disk."""
    with folder() as home:
        store = FileStore(home / "s", CLOCK)
        run = chain(4, []).run({"subject": "mathematics", "level": "national_5"}, store=store)
        source = home / "s" / run.run_id
        for number in range(10_000):
            day, second = divmod(number, 1000)
            name = f"202601{day + 1:02d}_{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}"
            shutil.copytree(source, home / "s" / name)
        few_of = str(home / "s")
        shutil.copytree(few_of, home / "few", ignore=lambda path, names: names[50:] if path == few_of else [])

        def newest() -> None:
            assert len(list(islice(store.heads(), 50))) == 50

        def every_second() -> None:
            turn = cycle((True, False))
            assert 4999 < len(list(store.heads(lambda d: d["status"] == "completed" and next(turn)))) < 5002

        def none() -> None:
            assert not list(store.heads(lambda d: d["status"] == "failed"))

        newest()
        say("newest 50 of 10,000 runs", best(newest, 15, time.process_time) * 1000, 10.0, "ms")
        say("filter over 10,000 runs, none matches", best(none, 3, time.process_time), 0.5, "s")
        say("filter over 10,000 runs, half of them match", best(every_second, 3, time.process_time), 0.5, "s")
        command = [sys.executable, "-m", "pipeline", "list", "--store"]
        few, many = least_cpu([*command, f"files:{home / 'few'}"], [*command, f"files:{home / 's'}"])
        say("list over 10,000 runs / over 50", many / few, 1.2, "x")


def starts() -> None:
    """How long --help and list take to start, against the interpreter with click and tabulate. CPU time."""
    with folder() as home:
        chain(4, []).run({"subject": "mathematics", "level": "national_5"}, store=FileStore(home / "s", CLOCK))
        python = sys.executable
        base, helped, empty, listed = least_cpu(
            [python, "-c", "import click, tabulate"],
            [python, "-m", "pipeline", "--help"],
            [python, "-m", "pipeline", "list", "--store", f"files:{home / 'none'}"],
            [python, "-m", "pipeline", "list", "--store", f"files:{home / 's'}"],
        )
        say("--help / python -c 'import click, tabulate'", helped / base, 1.5, "x")
        say("list of no run / python -c 'import click, tabulate'", empty / base, 1.5, "x")
        say("list of a run / python -c 'import click, tabulate'", listed / base, 1.5, "x")


def course() -> None:
    """A full offline course, and the size of its checkpoint.json."""
    with folder() as home:
        begun = time.perf_counter()
        arguments = ["lessons", "--subject", "mathematics", "--level", "national_5", "--model", "offline"]
        run_quietly(
            [sys.executable, "-m", "pipeline", *arguments, "--store", f"files:{home / 's'}", "--out", str(home / "o")]
        )
        say("full offline course, 18 lessons", time.perf_counter() - begun, 60.0, "s")
        head = next((home / "s").glob("2*/checkpoint.json"))
        say("  its checkpoint.json", head.stat().st_size / 1000, 100.0, "kB")


ALL = (steps, four_steps, sizes, all_to_all, fan_out, many_tasks, items, listing, starts, course)

if __name__ == "__main__":
    chosen = sys.argv[1:]
    for figure in ALL:
        if not chosen or figure.__name__ in chosen:
            figure()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
