"""What a store has lost: a resume makes the work of a lost value again, and no sum becomes less by a lost record."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.records.lines import TAIL
from pipeline.records.values import canonical, digest
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.said import Cli
from tests.servers.billing import BillingServer

COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--yes"]
OFFLINE = ["--lessons", "2", "--model", "offline"]
PAID = ["--lessons", "4", "--model", "claude-sonnet-5-5"]


class Sown:
    """A course in a folder that has a scheme and no lessons."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self._cli = cli
        self.place = ["--store", f"files:{folder}/runs", "--out", str(folder / "out")]
        assert cli(*COURSE, *OFFLINE, *self.place, "--until", "sow").code == 0
        store = FileStore(folder / "runs", SystemClock())
        (self.run,) = [head.run_id for head in store.heads()]
        self.state = load(store, self.run)
        self._values = folder / "runs" / self.run / "blobs"

    def file(self, blob: str) -> Path:
        return self._values / blob[:2] / blob

    def resume(self) -> tuple[int, str]:
        said = self._cli("lessons", "--resume", self.run, *self.place)
        return said.code, said.out + said.err


@pytest.fixture
def sown(cli: Cli, tmp_path: Path) -> Sown:
    return Sown(cli, tmp_path)


def test_step_whose_value_is_gone_is_made_again_by_the_resume(sown: Sown, cli: Cli) -> None:
    sown.file(sown.state.steps["sow#1"].artifacts["scheme"]).unlink()
    checked = cli("store", "check", *sown.place[:2])
    assert checked.code == 3
    assert "makes that work again" in checked.err
    code, text = sown.resume()
    assert (code, "The store has lost the scheme of sow: running that work again" in text) == (0, True), text
    assert "Published:" in text
    assert cli("store", "check", *sown.place[:2]).code == 0


def test_step_whose_value_is_damaged_is_made_again_once_that_was_found(sown: Sown, cli: Cli) -> None:
    scheme = sown.file(sown.state.steps["sow#1"].artifacts["scheme"])
    scheme.write_bytes(b"junk" + scheme.read_bytes())
    assert cli(*COURSE, *OFFLINE, *sown.place, "--dry-run").code == 0
    code, text = sown.resume()
    assert (code, "is missing or damaged" in text) == (6, True), text
    code, text = sown.resume()
    assert (code, "The store has lost the scheme of sow" in text) == (0, True), text


def test_lost_prompt_and_graph_that_the_program_still_has_are_put_back(sown: Sown, cli: Cli) -> None:
    lost = {name: sown.file(sown.state.pins[name]) for name in ("prompt:outline", "graph")}
    before = {name: file.read_bytes() for name, file in lost.items()}
    for file in lost.values():
        file.unlink()
    code, text = sown.resume()
    assert (code, "(prompt outline); it is restored from this program" in text) == (0, True), text
    assert {name: file.read_bytes() for name, file in lost.items()} == before
    assert cli("store", "check", *sown.place[:2]).code == 0


def test_lost_prompt_that_the_program_has_otherwise_is_named(sown: Sown, cli: Cli) -> None:
    blob = sown.state.pins["prompt:outline"]
    other = canonical("A prompt of an older program.", "prompt")
    journal = sown.file(blob).parents[2] / "journal.jsonl"
    lines = journal.read_bytes().splitlines()
    sown.file(blob).unlink()
    lines[0] = lines[0].replace(blob.encode(), digest(other).encode())
    body = lines[0][:-TAIL]
    lines[0] = body + b',"crc":"%08x"}' % zlib.crc32(body)
    journal.write_bytes(b"\n".join(lines) + b"\n")
    code, text = sown.resume()
    assert code == 3, text
    assert "The store has lost the prompt outline that run" in text
    assert " store copy`" in text


def test_lost_graph_of_a_pipeline_that_has_changed_is_named(tmp_path: Path, cli: Cli) -> None:
    steps, place = tmp_path / "own.py", ["--store", f"files:{tmp_path}/runs"]

    def pipeline(*names: str) -> None:
        text = "from pipeline import Pipeline, step\n"
        text += "".join(
            f"@step()\ndef {name}(ctx):\n    return {{'v': ctx.params.get('v', 1) / 0}}\n" for name in names
        )
        steps.write_text(f"{text}made = Pipeline('made', [{', '.join(names)}])\n")

    pipeline("a")
    assert cli("run", f"{steps}:made", *place).code == 6
    store = FileStore(tmp_path / "runs", SystemClock())
    (run,) = [head.run_id for head in store.heads()]
    blob = load(store, run).pins["graph"]
    (tmp_path / "runs" / run / "blobs" / blob[:2] / blob).unlink()
    pipeline("a", "b")
    said = cli("run", f"{steps}:made", "--resume", run, *place)
    assert (said.code, f"has lost the graph that run {run} was started with" in said.err) == (3, True), said.err
    assert "pipeline as it was" in said.err
    pipeline("a")
    assert cli("run", f"{steps}:made", "--resume", run, *place).code == 6
    assert store.blobs(run) == [blob]


def _call(lines: list[bytes]) -> list[int]:
    """Where the last call begins and ends."""
    facts = [json.loads(line) for line in lines]
    ended = max(number for number, fact in enumerate(facts) if fact["kind"] == "call_ended")
    (begun,) = [number for number, fact in enumerate(facts) if fact["seq"] == facts[ended]["call"]]
    return [begun, ended]


def _cut(lines: list[bytes]) -> list[bytes]:
    return [line for number, line in enumerate(lines) if number not in _call(lines)]


DAMAGE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "emptied": lambda lines: [],
    "a call cut out, the first record harmed": lambda lines: [b"x\n", *_cut(lines)[1:]],
    "a call cut out": _cut,
    "a call harmed": lambda lines: [b"harmed\n" if n in _call(lines) else line for n, line in enumerate(lines)],
    "an end cut out": lambda lines: [line for number, line in enumerate(lines) if number != _call(lines)[1]],
    "cut short": lambda lines: lines[: _call(lines)[0]],
    "all but the first": lambda lines: lines[:1],
}


@pytest.mark.usefixtures("out")
def test_sums_say_at_least_what_the_head_knew_of_lost_records(cli: Cli, root: Path, server: BillingServer) -> None:
    made = cli(*COURSE, *PAID, "--json").json()[-1]
    assert made["status"] == "completed", json.dumps(made)
    run, journal = made["run"], root / made["run"] / "journal.jsonl"
    bill = float(server.bill.usd)
    shutil.copytree(root, whole := root.with_name("whole"))
    for what, damage in DAMAGE.items():
        shutil.rmtree(root)
        shutil.copytree(whole, root)
        journal.write_bytes(b"".join(damage(journal.read_bytes().splitlines(keepends=True))))
        _tells(cli, run, bill, what)
        before = len(server.bill.entries())
        again = cli("lessons", "--resume", run, "--model", "claude-sonnet-5-5", "--yes")
        if again.code == 0:
            bill_now = float(server.bill.usd)
            assert len(server.bill.entries()) >= before
            _tells(cli, run, bill, f"{what}, resumed")
            assert bill_now >= bill


@pytest.mark.usefixtures("out")
def test_sums_of_a_run_whose_journal_was_removed_are_those_of_its_head_and_counted_once(
    cli: Cli, root: Path, server: BillingServer
) -> None:
    made = cli(*COURSE, *PAID, "--until", "sow", "--json").json()[-1]
    (root / made["run"] / "journal.jsonl").unlink()
    for command in (["cost"], ["cost", made["run"]], ["cost", "--by", "day"]):
        rows = cli(*command, "--json").json()
        assert rows[-1]["at_least_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6), command
        assert rows[-1]["at_most_usd"] is None, command
        assert "imported" not in [row["type"] for row in rows], command


def _tells(cli: Cli, run: str, bill: float, what: str) -> None:
    for command in (["cost"], ["cost", run], ["cost", run, "--by", "call"], ["cost", "--by", "run"]):
        total = cli(*command, "--json").json()[-1]
        assert total["at_least_usd"] == pytest.approx(bill, abs=1e-6) or total["at_least_usd"] > bill, (what, command)
        assert total["at_most_usd"] is None, (what, command)
        assert "at least" in cli(*command).out, (what, command)
    (row,) = cli("list", "--json").json()
    assert row["cost_usd"] >= bill - 1e-6, what
    assert row["possibly_usd"] is None, what
    assert "at least" in cli("list").out, what
    status = cli("status", run, "--json")
    if status.code == 0:
        assert status.json()[-1]["cost_usd"] >= bill - 1e-6 or "an end" in what, what
        assert "at least" in cli("status", run).out, what
