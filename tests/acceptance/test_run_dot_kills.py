"""Graphs that are killed or stopped: real processes, a server that keeps its own bill; nothing is paid for twice."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.records.fold import spent
from pipeline.records.run import RunState
from pipeline.store.reader import load
from pipeline.store.run_folder import RunFolder
from tests.acceptance.dots import FAN, put, read, wait_for
from tests.acceptance.killing import CLOCK, Starter, kill_after
from tests.said import Cli
from tests.servers.bill import blocks
from tests.servers.billing import BillingServer
from tests.tiers import trials

TRIALS = trials(2, 12, 100)
LATENCY = 0.05


def reply(body: Mapping[str, Any], fault: str) -> str:
    """The prompt, said back."""
    return "I say: " + "".join(block["text"] for block in blocks(body["messages"][-1]["content"]))[:80]


class Fan:
    """One paid fan-out in a folder of its own."""

    def __init__(self, home: Path, starter: Starter, server: BillingServer) -> None:
        self.path = put(home, FAN)
        self.folder = home / ".attractor_run"
        self.log = home / "log.txt"
        self._starter = starter
        self._server = server

    def begin(self, *more: str) -> int:
        """Start the program; its pid."""
        env = {"ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": self._server.url}
        return self._starter.start(["run", self.path, *more, "--quiet"], env, self.log)

    def go(self) -> int:
        """Resume, or start where there is nothing yet; the pid."""
        place = "--resume" if (self.folder / "journal.jsonl").exists() else "--run-dir"
        return self.begin(place, str(self.folder))

    def wait(self) -> int:
        return self._starter.wait()

    def state(self) -> RunState:
        store = RunFolder(self.folder, SystemClock())
        return load(store, store.run_id)

    def document(self) -> Any:
        return read(self.folder / "checkpoint.json")


@pytest.fixture(scope="module")
def undisturbed(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """The context of a run without kills, and how long it takes."""
    with BillingServer(responder=reply, latency=LATENCY) as server:
        fan = Fan(tmp_path_factory.mktemp("undisturbed"), starter, server)
        begun = CLOCK.monotonic()
        fan.go()
        assert fan.wait() == 0, fan.log.read_text()
        assert server.bill.requests == 5
        return fan.document()["context"], CLOCK.monotonic() - begun


@pytest.mark.parametrize("seed", range(TRIALS))
def test_killed_fan_out_goes_on_and_pays_nothing_twice(
    starter: Starter, undisturbed: tuple[Any, float], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    context, duration = undisturbed
    possible, code = 0, 1
    with BillingServer(responder=reply, latency=LATENCY) as server:
        fan = Fan(tmp_path, starter, server)
        for _ in range(1 + draw.randrange(2)):
            left = max(5 - server.bill.requests, 0)
            kill_after(server, fan.go(), draw.randint(0, left), draw.uniform(0.0, duration / 4), signal.SIGKILL)
            code = fan.wait()
            if (fan.folder / "journal.jsonl").exists():
                possible += len(fan.state().open_calls)
            if code == 0:
                break
        if code != 0:
            fan.go()
            assert fan.wait() == 0, fan.log.read_text()
        document, bill = fan.document(), server.bill
    assert document["status"] == "completed"
    assert document["context"] == context
    assert int(bill.to_json()["repeated"]) <= possible
    assert bill.requests <= 5 + possible
    total = spent(fan.state())
    assert total.usd + total.low <= bill.usd <= total.usd + total.high
    assert sorted(document["completed_nodes"]) == sorted(
        ["start", "split", "a", "a2", "b", "c", "join", "sum", "exit"]
    )  # fmt: skip
    numbers = sorted(path.name for path in (fan.folder / "checkpoints").iterdir())
    assert [name.partition("_")[0] for name in numbers] == [f"{n:03d}" for n in range(1, 10)]
    assert read(fan.folder / "final.json")["status"] == "completed"


def test_half_finished_fan_out_asks_only_what_is_missing(starter: Starter, tmp_path: Path) -> None:
    """Killed while `b` and `c` are answered and `a2` is not."""
    hold = threading.Event()

    def slow(body: Mapping[str, Any], fault: str) -> str:
        said = reply(body, fault)
        if "More of A" in said:
            hold.wait(300)
        return said

    with BillingServer(responder=slow) as server:
        fan = Fan(tmp_path, starter, server)
        pid = fan.go()
        # The files for people follow the checkpoint.
        answers = [fan.folder / node / "response.md" for node in "abc"]
        wait_for(lambda: server.bill.requests == 4 and len(fan.document().get("completed_nodes") or ()) == 5)
        wait_for(lambda: all(map(Path.exists, answers)))
        os.kill(pid, signal.SIGKILL)
        assert fan.wait() == -signal.SIGKILL
        half = fan.document()
        assert sorted(half["completed_nodes"]) == ["a", "b", "c", "split", "start"]
        assert (fan.folder / "b" / "response.md").read_text().startswith("I say: View B")
        assert not (fan.folder / "final.json").exists()
        hold.set()
        fan.go()
        assert fan.wait() == 0, fan.log.read_text()
        asked = ["".join(block["text"] for block in blocks(body["messages"][-1]["content"])) for _, body in server.seen]
    assert sorted(asked) == sorted(
        ["View A of five views", "View B of five views", "View C of five views", "More of A", "More of A", "Sum up"]
    )
    document = fan.document()
    assert document["total_cost_usd"] > 0
    assert document["node_outcomes"]["b"]["cost_usd"] > 0
    assert document["possibly_spent_usd"] > 0


def test_ceiling_holds_over_a_resume(starter: Starter, tmp_path: Path) -> None:
    def long(body: Mapping[str, Any], fault: str) -> str:
        return "many words " * 2200

    with BillingServer(responder=long) as server:
        fan = Fan(tmp_path, starter, server)
        fan.begin("--run-dir", str(fan.folder), "--max-cost-usd", "0.3", "--concurrency", "1")
        assert fan.wait() == 5, fan.log.read_text()
        before = server.bill.requests
        assert 1 <= before < 5
        fan.begin("--resume", str(fan.folder))
        assert fan.wait() == 5, fan.log.read_text()
        assert server.bill.requests == before
        fan.begin("--resume", str(fan.folder), "--max-cost-usd", "5")
        assert fan.wait() == 0, fan.log.read_text()
        assert server.bill.requests == 5
        assert float(spent(fan.state()).usd) == pytest.approx(float(server.bill.usd))


SLOW = """digraph Slow {
  start [shape=Mdiamond]
  first [shape=parallelogram, tool_command="echo first >> LOG"]
  second [shape=parallelogram, tool_command="echo second >> LOG; while [ ! -e go ]; do sleep 0.05; done"]
  exit [shape=Msquare]
  start -> first -> second -> exit
}
"""


class Slow:
    """One run whose second command waits for a file."""

    def __init__(self, home: Path, starter: Starter, text: str = SLOW) -> None:
        self.home = home
        self.folder = home / "run"
        self.path = put(home, text.replace("LOG", str(home / "log")).replace("-e go", f"-e {home / 'go'}"))
        self._starter = starter

    def start(self, *more: str) -> int:
        return self._starter.start(["run", self.path, "--allow-tools", *more], {}, self.home / "out.txt")

    def go(self, *more: str) -> int:
        self.start(*more)
        return self._starter.wait()

    def until_second(self) -> None:
        wait_for(lambda: "second" in self.said())

    def said(self) -> str:
        return (self.home / "log").read_text() if (self.home / "log").exists() else ""

    def out(self) -> str:
        return (self.home / "out.txt").read_text()

    def kill(self, pid: int, number: int) -> int:
        os.kill(pid, number)
        return self._starter.wait()

    def let_go(self) -> None:
        (self.home / "go").touch()


def test_killed_between_nodes_the_folder_says_what_was_done(starter: Starter, cli: Cli, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter)
    pid = slow.start("--run-dir", str(slow.folder))
    slow.until_second()
    assert slow.kill(pid, signal.SIGKILL) == -signal.SIGKILL
    document = read(slow.folder / "checkpoint.json")
    assert (document["current_node"], document["completed_nodes"]) == ("first", ["start", "first"])
    assert document["next_node_id"] == "second"
    assert sorted(path.name for path in (slow.folder / "checkpoints").iterdir()) == ["001_start.json", "002_first.json"]
    assert not (slow.folder / "final.json").exists()
    way_on = next(line for line in cli("status", str(slow.folder)).out.splitlines() if line.startswith("Resume:"))
    assert way_on.endswith(f"--resume {slow.folder} --retry-unknown  # give again: --allow-tools")
    slow.let_go()
    # Whether the second command did its work is unknown, so it is not repeated unasked.
    assert slow.go("--resume", str(slow.folder)) == 6
    assert "second has side effects" in slow.out()
    assert slow.said() == "first\nsecond\n"
    assert slow.go("--resume", str(slow.folder), "--yes") == 0
    assert slow.said() == "first\nsecond\nsecond\n"
    assert read(slow.folder / "checkpoint.json")["completed_nodes"] == ["start", "first", "second", "exit"]
    assert read(slow.folder / "final.json")["status"] == "completed"


def test_interrupted_run_ends_its_node_first(starter: Starter, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter)
    pid = slow.start("--run-dir", str(slow.folder))
    slow.until_second()
    os.kill(pid, signal.SIGINT)
    # It may be heard later than the file is found.
    wait_for(lambda: "Stopping (SIGINT)" in slow.out())
    slow.let_go()
    assert starter.wait() == 130
    assert f"--resume {slow.folder}" in slow.out()
    assert read(slow.folder / "checkpoint.json")["completed_nodes"] == ["start", "first", "second"]
    assert not (slow.folder / "final.json").exists()
    assert slow.go("--resume", str(slow.folder)) == 0
    assert slow.said() == "first\nsecond\n"


def test_folder_of_a_living_run_is_locked(starter: Starter, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter)
    try:
        pid = slow.start("--run-dir", str(slow.folder))
        slow.until_second()
        for place in ("--resume", "--run-dir"):
            log = tmp_path / f"other{place}.txt"
            starter.start(["run", slow.path, "--allow-tools", place, str(slow.folder)], {}, log)
            assert starter.wait() == 3
            assert str(pid) in log.read_text()
        slow.let_go()
        assert starter.wait(pid) == 0
    finally:
        slow.let_go()
    assert slow.said() == "first\nsecond\n"
