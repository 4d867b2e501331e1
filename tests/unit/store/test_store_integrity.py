"""`store check` finds each kind of damage of a folder of runs, says what it is, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import RunNotFound
from pipeline.records.kinds import StepCompleted, StepStarted
from pipeline.records.lines import encode_line
from pipeline.records.values import digest
from pipeline.store.account import FileAccount
from pipeline.store.files import FileStore
from pipeline.store.integrity import Problem, check
from tests.faulty_disk import LazyDisk
from tests.journals import AT, StillClock, line, small_run, started
from tests.stores import write

LESSON = digest(b"lesson")
NOWHERE = digest(b"nowhere")


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "runs", StillClock(), disk=LazyDisk())


@pytest.fixture
def home(store: FileStore) -> Path:
    """The folder of a run with a value that a record refers to."""
    run = write(store, small_run())
    journal = store.open(run)
    journal.put_blob(b"lesson")
    journal.put_blob(b"of no use")
    journal.append(8, [line(8, StepCompleted("lessons#1", {"$blob": LESSON, "bytes": 6}, "3"))])
    journal.close()
    return store.root / run


def found(store: FileStore) -> list[Problem]:
    return list(check(store, FileAccount(store.root, StillClock())))


def rewrite(home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = home / "journal.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def test_sound_store_has_nothing_to_say(store: FileStore, home: Path) -> None:
    assert found(store) == []


def flip(rows: list[bytes]) -> list[bytes]:
    return [*rows[:2], rows[2].replace(b"seed", b"seet"), *rows[3:]]


DAMAGE: list[tuple[str, Callable[[list[bytes]], list[bytes]], list[str]]] = [
    ("a flipped bit", flip, ["between records 2 and 4 are not a record", "Record 3 is missing"]),
    ("lines cut out", lambda rows: rows[:3] + rows[5:], ["Records 4 to 5 are missing"]),
    ("a lost newline", lambda rows: [rows[0], rows[1][:-1], *rows[2:]], ["newline between records 2 and 3"]),
    ("a torn end", lambda rows: [*rows, b'{"seq":9,"at":"2026'], ["the last 19 bytes are an incomplete record"]),
    ("lost records at the end", lambda rows: rows[:3], ["Records 4 to 7 are missing"]),
    ("a damaged beginning", lambda rows: [rows[0][:20] + b"\n", *rows[1:]], ["Its first record"]),
    ("nothing", lambda rows: [], ["first record is damaged"]),
    (
        "a whole line that is inconsistent",
        lambda rows: [*rows, encode_line(9, "2026-01-09T14:30:22.000Z", 1, b'{"kind":7}')],
        ["Record 9 is intact"],
    ),
    ("records of a newer version", lambda rows: [started(format=99), *rows[1:]], ["newer version"]),
]


@pytest.mark.parametrize(("change", "said"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damaged_journal_is_explained(
    store: FileStore, home: Path, change: Callable[[list[bytes]], list[bytes]], said: list[str]
) -> None:
    rewrite(home, change)
    before = (home / "journal.jsonl").read_bytes()
    problems = found(store)
    for text in said:
        assert any(text in problem.text and problem.serious for problem in problems), problems
    assert {problem.run for problem in problems} == {home.name}
    assert (home / "journal.jsonl").read_bytes() == before


def test_missing_journal_is_explained(store: FileStore, home: Path) -> None:
    (home / "journal.jsonl").unlink()
    (home / "checkpoint.json").unlink()
    assert "Its journal is missing." in [problem.text for problem in found(store)]


def test_value_is_missed_and_its_damage_serious_where_a_record_refers_to_it(store: FileStore, home: Path) -> None:
    for name in (LESSON, digest(b"of no use")):
        (home / "blobs" / name[:2] / name).write_bytes(b"junk")
    said = {problem.text.partition(";")[0]: problem.serious for problem in found(store)}
    assert said == {
        f"The value {LESSON} is damaged": True,
        f"The value {digest(b'of no use')} is damaged": False,
    }
    (home / "blobs" / LESSON[:2] / LESSON).unlink()
    pinned, journal = store.create(started(pins={"graph": NOWHERE}), [], at=AT)
    journal.close()
    missing = [(problem.run, problem.text) for problem in found(store) if problem.serious]
    assert missing == [
        (pinned, f"The value {NOWHERE} is missing; a record refers to it."),
        (home.name, f"The value {LESSON} is missing; a record refers to it."),
    ]


def test_head_that_was_changed_is_said(store: FileStore, home: Path) -> None:
    path = home / "checkpoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "completed"}))
    (problem,) = found(store)
    assert "was changed by hand" in problem.text


def test_damaged_sub_journal_is_named_by_its_path(store: FileStore, home: Path) -> None:
    part = store.open(f"{home.name}/fan#1/left#1")
    part.append(1, [line(seq, StepStarted(f"s{seq}#1")) for seq in (1, 2, 3)])
    part.close()
    (path,) = home.glob("parts/*/journal.jsonl")
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(rows[0] + rows[2])
    (problem,) = found(store)
    assert (problem.run, problem.text.partition(";")[0]) == (
        f"{home.name}/fan#1/left#1", "Record 2 is missing from the journal"
    )  # fmt: skip


def test_mended_damage_is_told_without_alarm(store: FileStore, home: Path) -> None:
    rewrite(home, flip)
    store.open(home.name).close()
    (problem,) = found(store)
    assert not problem.serious
    assert "journal.damaged-1 keeps" in problem.text


def test_half_made_and_half_removed_runs_are_told(store: FileStore, home: Path) -> None:
    for name in (".new-1-aa", ".deleted-20260101_000000-bb"):
        (store.root / name).mkdir()
    assert [(problem.run, problem.serious) for problem in found(store)] == [
        (".deleted-20260101_000000-bb", False), (".new-1-aa", False)
    ]  # fmt: skip


def test_account_that_lost_a_fact_is_told(store: FileStore, home: Path) -> None:
    account = FileAccount(store.root, StillClock())
    for owner in ("a", "b", "c"):
        account.reserve(owner, Decimal(1), AT, Decimal(9))
    path = store.root / "account.jsonl"
    # What a writer that died leaves is no loss: its fact never counted.
    path.write_bytes(path.read_bytes() + b"half a fa")
    assert found(store) == []
    path.write_bytes(path.read_bytes().replace(b'"owner":"b"', b'"owner":"x"'))
    (problem,) = found(store)
    assert "Its copy .account.jsonl has them" in problem.text
    path.with_name(".account.jsonl").write_bytes(path.read_bytes())
    (problem,) = found(store)
    assert (problem.run, problem.serious) == ("", True)
    assert "has lost 1 of its records" in problem.text
    path.with_name(".account.jsonl").unlink()
    path.write_bytes(b"junk\n")
    assert ["has lost all of its records" in each.text for each in found(store)] == [True]


def test_one_run_is_checked_alone(store: FileStore, home: Path) -> None:
    other = write(store, small_run())
    rewrite(home, flip)
    account = FileAccount(store.root, StillClock())
    assert list(check(store, account, other)) == []
    assert list(check(store, account, home.name))
    with pytest.raises(RunNotFound):
        list(check(store, account, "20200101_000000"))
