"""Speed of the desk: the page of runs over 10,000 runs, a run of 100,000 items; CPU time of data and HTML.

    python tests/benchmarks/desk.py

Prints one line a figure: name, measured, goal, ok or MISSED. No test; nothing fails by it.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from starlette.requests import Request  # noqa: E402

from pipeline.app.run_index import RunFilter  # noqa: E402
from pipeline.app.stores import open_store  # noqa: E402
from pipeline.ui.desk import Desk  # noqa: E402
from pipeline.ui.layout import Here, render  # noqa: E402
from pipeline.ui.run import run_page  # noqa: E402
from pipeline.ui.runs import PAGES  # noqa: E402
from tests.benchmarks.measure import best, folder, say  # noqa: E402
from tests.runs import BEGIN  # noqa: E402
from tests.sample_runs import completed_run, dead_run, failed_run, large_run  # noqa: E402

_RUNS, _ITEMS = 10_000, 100_000
_QUERIES = {
    "newest page": "", "page in the middle": "after=20260112_210622", "by status": "status=failed",
    "by text, subject and status": "q=higher&subject=physics&status=completed", "no run matches": "q=nothing",
    "of runs whose process is gone": "status=process+is+gone",
}  # fmt: skip


def made(home: Path) -> Path:
    """Make the runs: copies of a failed, a completed and one whose process died, a minute apart."""
    root = home / "runs"
    sources = [root / make(root) for make in (failed_run, completed_run, dead_run)]
    files = [{name: (run / name).read_bytes() for name in ("journal.jsonl", "checkpoint.json")} for run in sources]
    for number in range(1, _RUNS - 2):
        copy = root / f"{BEGIN + timedelta(days=-8, minutes=number):%Y%m%d_%H%M%S}"
        copy.mkdir(mode=0o700)
        for name, text in files[number % 3].items():
            (copy / name).write_bytes(text)
    return root


def copied(root: Path, url: str) -> None:
    """Copy the records and heads of the runs into another store."""
    source, target = open_store(f"files:{root}"), open_store(url)
    for head in source.heads():
        lines = list(source.read(head.run_id))
        text = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
        journal = target.create_named(head.run_id, text, at=BEGIN)  # type: ignore[attr-defined]
        journal.write_head(dict(head.document), False)
        journal.close()


def page(desk: Desk, query: str) -> str:
    scope = {"type": "http", "path": "/", "headers": [], "query_string": query.encode()}
    return render("runs.html", PAGES[0].data(desk, Request(scope)), Here(""))


def measure(kind: str, url: str, goal: float) -> None:
    page(Desk(url), "")
    cold = Desk(url)
    begun = time.process_time()
    cold.runs.page("", 50)
    say(f"{kind}: newest rows, cold", (time.process_time() - begun) * 1000, goal, "ms")
    cold.runs.look(RunFilter())
    for name, query in _QUERIES.items():
        say(f"{kind}: {name}", best(lambda query=query: page(cold, query), 10, time.process_time) * 1000, goal, "ms")  # type: ignore[misc]
    say(f"{kind}: size of the page", len(page(cold, "")) / 1000, 80.0, "kB")


def measure_items(home: Path) -> None:
    """Measure the page of a run of 100,000 items: before the server has seen it, and then."""
    run = large_run(home / "items", _ITEMS)
    scope = {"type": "http", "path": f"/runs/{run}", "headers": [], "query_string": b"", "path_params": {"run": run}}

    def shown(desk: Desk) -> str:
        return render("run.html", run_page(desk, Request(scope)), Here(f"runs/{run}"))

    # What is imported is not measured.
    shown(Desk(f"files:{home / 'items'}"))
    desk = Desk(f"files:{home / 'items'}")
    begun = time.process_time()
    shown(desk)
    say(f"{_ITEMS:,} items: page of the run, cold", (time.process_time() - begun) * 1000, 1000.0, "ms")
    say(f"{_ITEMS:,} items: page of the run", best(lambda: shown(desk), 10, time.process_time) * 1000, 1000.0, "ms")
    say(f"{_ITEMS:,} items: size of the page", len(shown(desk)) / 1000, 80.0, "kB")


def main() -> None:
    with folder() as home:
        measure_items(home)
        root = made(home)
        measure("files", f"files:{root}", 100.0)
        copied(root, f"sqlite:{home / 'runs.db'}")
        measure("SQLite", f"sqlite:{home / 'runs.db'}", 50.0)


if __name__ == "__main__":
    main()
