"""Documents on disk with any field replaced by junk: readers never crash, and one bad run never hides the others."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.cli import errors, main
from pipeline.records.lines import encode_line
from pipeline.store.account import ACCOUNT
from pipeline.store.files import FileStore
from pipeline.store.head import head_bytes, parse_head
from pipeline.store.names import JOURNAL
from pipeline.store.owner import LOCK
from pipeline.store.reader import load
from pipeline.store.retention import run_sums
from tests.journals import StillClock
from tests.sample_runs import ORIGINAL, completed_run, failed_run, original_run
from tests.tiers import trials

_DEEP = json.loads("[" * 400 + "]" * 400)
JUNK: tuple[Any, ...] = (
    None, "x", "\n\x1b[31m\u202e", -1, 1e300, 10**400, True, [], {}, [[]], [3], {"a": 1}, float("nan"), _DEEP,
)  # fmt: skip
Path_ = tuple[str | int, ...]


def paths(value: Any, so_far: Path_ = ()) -> Iterator[Path_]:
    """Where a document has a value: every key, and the first two of every list."""
    for key in value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ():
        yield (*so_far, key)
        yield from paths(value[key], (*so_far, key))


def spoilt(document: Any, path: Path_, junk: Any) -> Any:
    """The document with junk at that place."""
    made = at = copy.deepcopy(document)
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = junk
    return made


def _text(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class Victim(NamedTuple):
    """A document of a store: where it is, what it holds, and how it is written there."""

    file: str
    documents: list[Any]
    encode: Callable[[list[Any]], bytes]

    def write(self, root: Path, documents: list[Any]) -> None:
        (root / self.file).write_bytes(self.encode(documents))


def _lines(facts: list[Any]) -> bytes:
    return b"".join(encode_line(seq, "2026-01-09T00:00:00Z", 1, _text(fact)) for seq, fact in enumerate(facts, 1))


def victims(root: Path, bad: str, original: str) -> Iterator[Victim]:
    """Every kind of document in a store, each with a valid seal."""
    raw = (root / bad / "checkpoint.json").read_bytes()
    head = parse_head(raw)
    yield Victim(f"{bad}/checkpoint.json", [head], lambda found: head_bytes(found[0]))
    known = {key: value for key, value in (head or {}).items() if key not in ("seq", "journal_bytes")}
    yield Victim(f"{original}/checkpoint.json", [{**known, **ORIGINAL}], lambda found: _text(found[0]))
    facts = [json.loads(line) for line in (root / bad / JOURNAL).read_bytes().splitlines()]
    facts = [{key: value for key, value in fact.items() if key not in ("seq", "at", "owner", "crc")} for fact in facts]
    yield Victim(f"{bad}/{JOURNAL}", facts, _lines)
    sums = json.loads(json.dumps(run_sums(load(FileStore(root, StillClock()), bad)), default=str))
    account = [
        {"kind": "kept", "run": "20250101_000000", "sums": sums},
        {"kind": "reserved", "slice": "a", "owner": "o", "day": "2026-01-01", "usd": "1"},
        {"kind": "settled", "slice": "a", "usd": "1"},
    ]
    yield Victim(ACCOUNT, account, _lines)
    holder = {"host": "h", "pid": 1, "started": "1", "boot": "b", "space": "s", "since": "2026-01-09T00:00:00Z"}
    yield Victim(f"{bad}/{LOCK}", [holder], lambda found: _text(found[0]))


@pytest.fixture
def read(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The command line over a store, in this process: what it says, with no unexpected error, and its exit code."""

    def told(error: BaseException) -> str:
        raise error

    # What a person would find in a file is what the test shows.
    monkeypatch.setattr(errors, "_details_file", told)
    monkeypatch.setattr(main, "load_env_file", lambda: None)

    def run(*words: str, code: int | None = None) -> str:
        left = main.main([*words, "--store", f"files:{tmp_path / 'store'}"])
        said = capsys.readouterr()
        assert "unexpected" not in said.err, (words, said.err)
        assert code is None or left == code, (words, said.err)
        return str(said.out)

    return run


@pytest.mark.parametrize("kind", range(5), ids=["head", "import", "journal", "account", "lock"])
@settings(
    max_examples=trials(10, 40, 40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_junk_in_any_field_of_a_document_is_one_bad_row_at_most(
    kind: int, data: st.DataObject, tmp_path: Path, read: Callable[..., str]
) -> None:
    root = tmp_path / "store"
    if not root.exists():
        failed_run(root)
        completed_run(root)
        original_run(root)
    bad, good, original = "20260109_143022", "20260110_143022", "20260108_161230"
    victim = list(victims(root, bad, original))[kind]
    try:
        place = data.draw(st.sampled_from(list(paths(victim.documents))))
        victim.write(root, spoilt(victim.documents, place, data.draw(st.sampled_from(JUNK))))
    except (ValueError, TypeError, AttributeError):
        # No seal holds that: JSON has no such number, and a head is an object.
        return
    try:
        listed = [json.loads(line)["run_id"] for line in read("list", "--json", code=0).splitlines()]
        assert {bad, good, original} <= {*listed}
        read("cost", "--by", "run", "--json", code=0)
        read("status", good, code=0)
        whole = ("list", "cost", "cost --by call", "store check", "cleanup --dry-run")
        one = (f"status {bad}", f"status {original} --json", f"log {bad}", f"history {bad}", f"cost {bad}")
        for words in (*whole, *one):
            read(*words.split())
    finally:
        victim.write(root, victim.documents)
