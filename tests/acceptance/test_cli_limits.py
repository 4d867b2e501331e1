"""A store that goes away, ceilings, models without a price, folders and disks that cannot be written."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.disk import Disk
from pipeline.store.sql.connections import close_all
from tests.said import Cli, Said
from tests.servers import models
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2")
CLAUDE = "claude-sonnet-5-5"
UNPRICED = "claude-mythos-5"


def three_lines(said: Said) -> list[str]:
    """The last three lines on stderr: what happened, what is saved, the way on."""
    lines = said.err.splitlines()[-3:]
    assert [line.split(":")[0] for line in lines][:2] == ["Error", "Saved"], said.err
    return lines


def test_ceiling_reached_in_the_middle_exits_with_five_and_a_higher_one_goes_on(
    cli: Cli, out: Path, server: BillingServer
) -> None:
    # Enough for the outline and its worst case, not for all lessons.
    said = cli(*COURSE, "--max-cost-usd", "0.40")
    assert said.code == 5, said.err
    error, _, command = three_lines(said)
    assert "ceiling of $0.40" in error
    # `status` and `list` give the command of the last line.
    higher = command.rpartition(" --max-cost-usd ")[2]
    assert float(higher) > 0.40
    for text in (cli("status", "latest").out, cli("list").out):
        assert text.rstrip().endswith(f" --max-cost-usd {higher}")
    assert cli("status", "latest", "--json").json()[0]["resume_command"].endswith(f" --max-cost-usd {higher}")
    assert not out.exists()
    (row,) = cli("list", "--json").json()
    assert (row["status"], row["status_detail"]) == ("in_progress", "paused_budget")
    assert server.bill.usd <= Decimal("0.40")
    asked = server.bill.requests
    assert asked > 0
    again = cli("lessons", "--resume", "latest", "--max-cost-usd", "20")
    assert again.code == 0, again.err
    assert int(server.bill.to_json()["repeated"]) == 0
    assert server.bill.requests > asked
    assert (out / "course_c84775" / "index.html").exists()


def test_course_of_a_model_that_wraps_its_replies_costs_what_it_costs(
    cli: Cli, out: Path, root: Path, server: BillingServer
) -> None:
    wraps = ("```json\n{}\n```", "\ufeff{}", '{{"output": {}}}', "[{}]")
    said = cli(*COURSE)
    assert said.code == 0, said.err
    plain, made = server.bill.requests, sorted(path.name for path in out.rglob("*"))
    count = iter(range(1000))
    server.reset(responder=lambda body, fault: wraps[next(count) % len(wraps)].format(answer(body, fault)))
    said = cli(*COURSE, "--force", "--overwrite")
    assert said.code == 0, said.err
    assert server.bill.requests == plain
    assert sorted(path.name for path in out.rglob("*")) == made
    journal = max(root.glob("*/journal.jsonl")).read_text()
    assert "```json" in journal, "replies are recorded as received"


def test_model_without_a_price_is_refused_under_the_default_ceiling_before_any_step(
    cli: Cli, root: Path, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.MODELS, UNPRICED, {**models.MODELS[CLAUDE], "id": UNPRICED})
    said = cli(*COURSE, "--model", UNPRICED)
    assert said.code == 5, said.err
    assert UNPRICED in said.err
    assert "--prices" in said.err
    assert "none" in said.err
    assert server.bill.requests == 0
    assert not root.exists()


def test_store_that_cannot_be_written_says_so_and_exits_with_three(
    cli: Cli, root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli(*COURSE, "--until", "seed")
    before = sorted(path.name for path in root.iterdir())
    opened = Disk.open

    def read_only(disk: Disk, path: Path, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(disk, path, flags)

    monkeypatch.setattr(Disk, "open", read_only)
    for command in (COURSE, (*COURSE, "--force"), ("lessons", "--resume", "latest")):
        said = cli(*command)
        assert said.code == 3, said.err
        assert "Read-only file system" in said.err
        assert "Traceback" not in said.err
    assert cli("list").code == cli("status", "latest").code == cli("cost", "latest").code == 0
    assert sorted(path.name for path in root.iterdir()) == before


def test_store_below_a_file_says_so_and_exits_with_three(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    said = cli(*COURSE, "--store", f"files:{tmp_path}/file/runs")
    assert said.code == 3, said.err
    assert "Traceback" not in said.err


def test_folder_that_cannot_be_published_to_exits_with_seven_and_another_one_is_free(
    cli: Cli, tmp_path: Path, server: BillingServer
) -> None:
    (tmp_path / "file").write_text("no folder")
    refused = ("--out", str(tmp_path / "file" / "site"))
    assert cli(*COURSE, *refused).code == 7
    assert server.bill.requests == 0
    assert cli(*COURSE, "--until", "lessons").code == 0
    asked = server.bill.requests
    said = cli("lessons", "--resume", "latest", *refused)
    assert said.code == 7, said.err
    assert "--out DIR" in said.err
    again = cli("lessons", "--resume", "latest", "--out", str(tmp_path / "site"))
    assert again.code == 0, again.err
    assert server.bill.requests == asked
    assert (tmp_path / "site" / "course_c84775" / "index.html").exists()


@pytest.mark.parametrize("named", [True, False], ids=["recover", "resume"])
def test_disk_that_refuses_says_where_replies_are_kept_and_recover_or_a_resume_brings_them_back(
    named: bool, cli: Cli, root: Path, out: Path, server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    full = False

    def responder(body: dict[str, object], fault: str) -> str:
        nonlocal full
        full = server.bill.requests == 4
        return answer(body, fault)

    server.responder = responder  # type: ignore[assignment]
    written = Disk.write

    def write(disk: Disk, fd: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(disk, fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write", write)
        said = cli(*COURSE, "--concurrency", "1")
    assert said.code == 3, said.err
    (kept,) = tmp_path.glob("pipeline/kept/*.jsonl")
    begins = [line.partition(":")[0] for line in said.err.splitlines()[-5:]]
    assert begins == ["Error", "Saved", "Kept", "Hint", "Resume"]
    assert f"recover {said.err.split('recover ')[1].split()[0]} {kept}" in said.err
    (row,) = cli("list", "--json").json()
    assert row["status_detail"] == "interrupted"
    asked = server.bill.requests
    if named:
        recovered = cli("recover", "latest", str(kept))
        assert recovered.code == 0, recovered.err
        assert recovered.out.endswith(f"{kept} was removed.\n")
    again = cli("lessons", "--resume", "latest")
    assert again.code == 0, again.err
    assert (f"kept in {kept}" in again.out) is not named, "what a resume took in is said"
    assert not kept.exists()
    assert asked == 4
    total = cli("cost", "--json").json()[-1]
    assert total["cost_usd"] == pytest.approx(float(server.bill.usd))
    assert total["open_high_usd"] == 0
    assert int(server.bill.to_json()["repeated"]) == 0


FOUR = (*COURSE[:-1], "4")


def test_course_whose_file_was_removed_goes_on_in_a_copy_as_it_is_told(
    cli: Cli, out: Path, server: BillingServer, tmp_path: Path
) -> None:
    file, calls = tmp_path / "runs.db", 0
    store = ("--store", f"sqlite:{file}")

    def responder(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
                source.backup(copy)
            for each in tmp_path.glob("runs.db*"):
                each.unlink()
        return answer(*given, **named)

    server.responder = responder
    left = cli(*FOUR, *store, "--model", "claude-sonnet-5-5", "--concurrency", "1", "--yes")
    assert (left.code, calls) == (3, 4)
    assert "is gone: it was removed or replaced" in left.err
    hint = left.err.splitlines()[-1]
    assert hint.startswith("Hint: Restore the file from a copy, then: ./pipeline.sh lessons --resume ")
    assert "Resume:" not in left.err
    books = cli("cost", *store)
    assert "holds its last records" in books.out + books.err
    assert "at least" in books.out
    close_all()
    (tmp_path / "copy.db").rename(file)
    after = cli(*shlex.split(hint.partition("./pipeline.sh ")[2]), "--yes")
    assert (after.code, after.err, "Published:" in after.out) == (0, "", True)
    assert calls == 17, "a course of four lessons, each reply bought once"


AWAY: dict[str, Callable[[Path], object]] = {
    "store": lambda root: shutil.rmtree(root),
    "run": lambda root: shutil.rmtree(next(root.glob("2*"))),
    "journal": lambda root: next(root.glob("2*/journal.jsonl")).unlink(),
    "moved": lambda root: root.rename(root.with_name("elsewhere")),
}


@pytest.mark.parametrize("what", AWAY)
def test_course_whose_store_goes_away_asks_nothing_more_and_is_paid_once(
    cli: Cli, root: Path, out: Path, server: BillingServer, what: str
) -> None:
    calls = 0

    def responder(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            AWAY[what](root)
        return answer(*given, **named)

    server.responder = responder
    left = cli(*FOUR, "--model", "claude-sonnet-5-5", "--concurrency", "1", "--yes")
    assert (left.code, calls) == (3, 4)
    assert "Saved:" not in left.err
    _, spent, kept, hint = left.err.splitlines()
    assert spent.startswith("Spent: $")
    again = kept.partition("./pipeline.sh ")[2].removesuffix(" restores it")
    if what in ("store", "run"):
        told = cli("cost", "--json").json()
        assert [row["type"] for row in told] == ["unread", "total"]
        assert told[-1]["at_most_usd"] is None, "what the run cost is not counted"
    if what == "moved":
        root.with_name("elsewhere").rename(root)
    else:
        assert cli(*shlex.split(again)).code == 0
        assert cli("cost", "--json").json()[-1]["at_most_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6)
    after = cli(*shlex.split(hint.partition("./pipeline.sh ")[2]), "--yes")
    assert (after.code, after.err) == (0, "")
    assert list(out.iterdir())
    assert calls == 17, "a course of four lessons, each reply bought once"
    assert cli("cost", "--json").json()[-1]["at_most_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6)
