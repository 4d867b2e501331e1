"""Values that a store has lost: a resume makes the work again that they belong to, or says what they were."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.records.lines import TAIL
from pipeline.records.values import canonical, digest
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.said import Cli

COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "2", "--model", "offline"]


class Sown:
    """A course in a folder that has a scheme and no lessons."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self._cli = cli
        self.place = ["--store", f"files:{folder}/runs", "--out", str(folder / "out")]
        assert cli(*COURSE, *self.place, "--until", "sow").code == 0
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
    assert cli(*COURSE, *sown.place, "--dry-run").code == 0
    code, text = sown.resume()
    assert (code, "is missing or damaged" in text) == (6, True), text
    code, text = sown.resume()
    assert (code, "The store has lost the scheme of sow" in text) == (0, True), text


def test_lost_prompt_that_the_program_still_has_is_put_back(sown: Sown) -> None:
    prompt = sown.file(sown.state.pins["prompt:outline"])
    before = prompt.read_bytes()
    prompt.unlink()
    code, text = sown.resume()
    assert (code, "(prompt outline); it is restored from this program" in text) == (0, True), text
    assert prompt.read_bytes() == before


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


def test_lost_graph_that_the_program_still_has_is_put_back(sown: Sown, cli: Cli) -> None:
    graph = sown.file(sown.state.pins["graph"])
    before = graph.read_bytes()
    graph.unlink()
    code, text = sown.resume()
    assert (code, "Published:" in text) == (0, True), text
    assert graph.read_bytes() == before
    assert cli("store", "check", *sown.place[:2]).code == 0


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
