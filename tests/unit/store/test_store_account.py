"""The account of a folder of runs is kept twice: what one of the two files loses comes back from the other."""

from __future__ import annotations

import errno
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import WriteFailed
from pipeline.records.lines import encode_line
from pipeline.store.account import FileAccount
from pipeline.store.files import FileStore
from pipeline.store.run_folder import RunFolder
from tests.faulty_disk import FaultyDisk
from tests.journals import AT, StillClock

LIMIT = Decimal(10)
#: One for all, so that no two slices have the same name.
CLOCK = StillClock()
SUMS = {"calls": 2, "usd": "0.36", "low": "0", "high": "0"}


def _harm_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"0.36"', b'"0.63"'))


MISHAPS: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "a line harmed": _harm_line,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "junk": lambda path: path.write_bytes(b"\0" * 500),
    "an older one": lambda path: path.write_bytes(path.read_bytes().splitlines(keepends=True)[0]),
}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    account = FileAccount(tmp_path, CLOCK)
    account.reserve("a", Decimal(4), AT, LIMIT)
    account.keep("20260101_000000", SUMS)
    account.reserve("b", Decimal(5), AT, LIMIT)
    return tmp_path


@pytest.mark.parametrize("file", ["account.jsonl", ".account.jsonl"])
@pytest.mark.parametrize("mishap", MISHAPS)
def test_what_one_file_of_the_account_loses_the_other_has(made: Path, mishap: str, file: str) -> None:
    MISHAPS[mishap](made / file)
    for turn in range(2):
        account = FileAccount(made, CLOCK)
        assert account.kept() == {"20260101_000000": SUMS}
        assert account.total(AT.date()) == 9
        assert account.lost() == ""
        assert bool(list(account.flaws())) == (turn == 0 and file == "account.jsonl")
        # The next change puts it back.
        assert account.reserve("c", Decimal(2), AT, LIMIT) is None
    assert (made / "account.jsonl").read_bytes() == (made / ".account.jsonl").read_bytes()


def test_file_that_an_older_program_went_on_in_is_joined_with_its_copy(made: Path) -> None:
    fact = b'{"kind":"reserved","slice":"s","owner":"o","day":"2026-01-09","usd":"1"}'
    (made / "account.jsonl").write_bytes(encode_line(1, "2026-01-09T14:30:22.000Z", 0, fact))
    account = FileAccount(made, CLOCK)
    assert account.total(AT.date()) == 10
    assert account.reserve("c", Decimal(2), AT, LIMIT) is None
    again = FileAccount(made, CLOCK)
    assert again.total(AT.date()) == 10
    assert again.kept() == {"20260101_000000": SUMS}
    assert not list(again.flaws())


def test_line_without_its_owner_gives_way_to_the_copy(made: Path) -> None:
    first, *rest = (made / "account.jsonl").read_bytes().splitlines(keepends=True)
    body = first.replace(b'"owner":0,', b"").replace(b'"4"', b'"9"').rpartition(b',"crc"')[0]
    (made / "account.jsonl").write_bytes(b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body)) + b"".join(rest))
    account = FileAccount(made, CLOCK)
    assert account.total(AT.date()) == 9
    account.keep("20260102_000000", SUMS)
    again = FileAccount(made, CLOCK)
    assert again.kept() == {"20260101_000000": SUMS, "20260102_000000": SUMS}
    assert again.total(AT.date()) == 9
    assert not list(again.flaws())


def test_fact_that_both_files_lost_is_said_to_be_lost(made: Path) -> None:
    for name in ("account.jsonl", ".account.jsonl"):
        _harm_line(made / name)
    account = FileAccount(made, CLOCK)
    assert account.kept() == {}
    assert account.total(AT.date()) == 9
    assert "has lost 1 of its records" in account.lost()
    account.reserve("c", Decimal(1), AT, LIMIT)
    assert FileAccount(made, CLOCK).lost(), "also after the next change"


def test_one_account_sees_what_is_mended_and_added_by_another(made: Path) -> None:
    first, second = FileAccount(made, CLOCK), FileAccount(made, CLOCK)
    assert first.total(AT.date()) == second.total(AT.date()) == 9
    (made / "account.jsonl").unlink()
    first.keep("20260102_000000", SUMS)
    assert set(second.kept()) == {"20260101_000000", "20260102_000000"}
    second.reserve("d", Decimal(1), AT, LIMIT)
    assert first.total(AT.date()) == 10


def test_account_that_cannot_be_written_grants_nothing(tmp_path: Path) -> None:
    account = FileAccount(tmp_path, StillClock(), disk=(disk := FaultyDisk()))
    assert account.reserve("me", Decimal(1), AT, Decimal(10))
    disk.write_errors = [errno.ENOSPC]
    with pytest.raises(WriteFailed):
        account.reserve("me", Decimal(1), AT, Decimal(10))
    assert account.total(AT.date()) == 1
    assert account.reserve("me", Decimal(2), AT, Decimal(10))
    assert FileAccount(tmp_path, StillClock()).total(AT.date()) == 3


def test_torn_line_of_an_account_costs_only_itself(tmp_path: Path) -> None:
    clock = StillClock()
    account = FileAccount(tmp_path, clock)
    assert account.reserve("me", Decimal(1), AT, Decimal(10))
    with (tmp_path / "account.jsonl").open("ab") as file:
        file.write(b'{"seq":2,"at":"20')
    other = FileAccount(tmp_path, clock)
    assert other.total(AT.date()) == 1
    assert other.reserve("me", Decimal(2), AT, Decimal(10))
    assert account.total(AT.date()) == other.total(AT.date()) == FileAccount(tmp_path, clock).total(AT.date()) == 3


def test_change_of_an_account_is_durable_on_return(tmp_path: Path) -> None:
    account = FileAccount(tmp_path, CLOCK, disk=(disk := FaultyDisk()))
    name = account.reserve("me", Decimal(1), AT, LIMIT)
    assert name
    changes: list[Callable[[], object]] = [
        lambda: account.reserve("me", Decimal(1), AT, LIMIT),
        lambda: account.settle(name, Decimal(2)),
        lambda: account.keep("20260102_000000", SUMS),
    ]
    for change in changes:
        disk.syncs = 0
        change()
        assert disk.syncs == 2, "both files"
    disk.sync_errors = [errno.EIO]
    with pytest.raises(WriteFailed):
        account.reserve("me", Decimal(1), AT, LIMIT)
    assert account.total(AT.date()) == 3


@pytest.mark.parametrize("kind", [FileStore, RunFolder])
def test_account_is_written_by_the_disk_of_its_store(tmp_path: Path, kind: type[FileStore] | type[RunFolder]) -> None:
    disk = FaultyDisk()
    account = kind(tmp_path, CLOCK, disk=disk).account()
    before = disk.syncs
    account.reserve("a", Decimal(4), AT, LIMIT)
    assert disk.syncs > before
