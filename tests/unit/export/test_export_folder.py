"""An export is written whole, changes nothing the second time, and never takes the place of what a person wrote."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import PublishError
from pipeline.export import folder
from pipeline.export.folder import RECORD, write
from pipeline.files import replace_file

FIRST = {"docx/01-a.docx": b"one", "csv/questions.csv": b"two"}
SECOND = {"docx/01-a.docx": b"one, better", "csv/questions.csv": b"two"}


def standing(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if name != RECORD}


def test_same_export_again_changes_nothing(tmp_path: Path) -> None:
    assert write(tmp_path / "out", FIRST).new == set(FIRST)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert write(tmp_path / "out", FIRST).new == set()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    assert write(tmp_path / "out", SECOND).new == {"docx/01-a.docx"}
    assert standing(tmp_path / "out") == SECOND


def test_file_that_a_person_changed_is_kept_and_named(tmp_path: Path) -> None:
    write(tmp_path, FIRST)
    (tmp_path / "docx/01-a.docx").write_bytes(b"mine")
    made = write(tmp_path, SECOND)
    assert (len(made.new), made.kept) == (0, ("docx/01-a.docx",))
    assert standing(tmp_path)["docx/01-a.docx"] == b"mine"
    # Still a person's the next time, and replaced only where that is asked for.
    assert write(tmp_path, FIRST).kept == ("docx/01-a.docx",)
    assert write(tmp_path, SECOND, overwrite=True).lost == ("docx/01-a.docx",)
    assert standing(tmp_path) == SECOND


def test_file_that_was_there_before_the_first_export_is_kept(tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv/questions.csv").write_bytes(b"mine")
    assert write(tmp_path, FIRST).kept == ("csv/questions.csv",)


def test_files_of_earlier_exports_are_named_and_deleted_ones_forgotten(tmp_path: Path) -> None:
    write(tmp_path, FIRST)
    assert write(tmp_path, {"docx/01-b.docx": b"new title"}).left == ("csv/questions.csv", "docx/01-a.docx")
    (tmp_path / "docx/01-a.docx").unlink()
    assert write(tmp_path, {"docx/01-b.docx": b"new title"}).left == ("csv/questions.csv",)


def test_what_a_killed_export_had_begun_is_removed_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, FIRST)
    begun = [tmp_path / f"docx/.01-a.docx.{'0a' * 8}", tmp_path / f".{RECORD}.{'0b' * 8}"]
    others = [tmp_path / f"docx/.mine.docx.{'0a' * 8}", tmp_path / "docx/.01-a.docx.swp"]
    for path in (*begun, *others):
        path.write_bytes(b"half")
    write(tmp_path, SECOND)
    assert [path.exists() for path in (*begun, *others)] == [False, False, True, True]


@pytest.mark.parametrize("death", range(1, 5))
def test_export_that_died_anywhere_goes_on_without_taking_its_own_files_for_a_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: int
) -> None:
    write(tmp_path, FIRST)
    replace, calls = replace_file, iter(range(1, 99))

    def dying(path: Path, data: bytes) -> None:
        if next(calls) == death:
            raise KeyboardInterrupt
        replace(path, data)

    everything = {"docx/01-a.docx": b"one, better", "csv/questions.csv": b"two, better"}
    monkeypatch.setattr(folder, "replace_file", dying)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, everything)
    monkeypatch.setattr(folder, "replace_file", replace)
    third = {name: data + b"!" for name, data in everything.items()}
    assert write(tmp_path, third).kept == ()
    assert standing(tmp_path) == third


def test_disk_that_is_full_is_told_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def full(fd: int) -> None:
        if os.path.getsize(fd) == len(b"two"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PublishError) as caught:
        write(tmp_path, {"csv/questions.csv": b"two"})
    assert (caught.value.code, standing(tmp_path)) == ("cannot_write", {})


def test_two_exports_at_once_both_know_their_files_afterwards(tmp_path: Path) -> None:
    halves = [{f"csv/{half}-{n}.csv": b"one" for n in range(20)} for half in "ab"]
    with ThreadPoolExecutor() as pool:
        assert [len(made.new) for made in pool.map(lambda files: write(tmp_path, files), halves)] == [20, 20]
    again = {name: b"two" for half in halves for name in half}
    assert write(tmp_path, again).kept == ()


def test_folder_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PublishError) as caught:
        write(tmp_path / "out", FIRST)
    assert caught.value.code == "link_leads_out"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError):
        write(tmp_path / "file", FIRST)
