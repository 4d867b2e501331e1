"""Which runs are listed by their checkpoint.json alone, and which are read again from their records."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import StoreError
from pipeline.records.documents import head_document
from pipeline.records.lines import encode_line
from pipeline.store.backend import Backend, Tip
from pipeline.store.base import Head
from pipeline.store.files import FileStore
from pipeline.store.folder import FolderBackend
from pipeline.store.heads import Listing
from pipeline.store.reader import load
from tests.journals import AT, StillClock, small_run
from tests.other_user import as_other


def finished_run(root: Path, params: dict[str, Any] | None = None) -> Path:
    """A run whose head is up to date; its folder."""
    store = FileStore(root, StillClock())
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:])
    journal.write_head(head_document(load(store, run), journal.size, ["seed", "sow"]), durable=True)
    journal.close()
    return root / run


class Asked:
    """Stands for what reads records again; remembers which runs it was asked for."""

    def __init__(self, answer: Head | None) -> None:
        self.runs: list[str] = []
        self._answer = answer

    def __call__(self, backend: Backend, tip: Tip) -> Head | None:
        self.runs.append(tip.run)
        return self._answer


def listing(root: Path, asked: Asked) -> Listing:
    return Listing(FolderBackend(root, StillClock()), asked)


def test_fresh_head_is_listed_without_reading_records(tmp_path: Path) -> None:
    run = finished_run(tmp_path).name
    asked = Asked(None)
    (head,) = listing(tmp_path, asked).heads(lambda document: document["subject"] == "mathematics")
    assert (head.run_id, head.document["last_completed_step"], asked.runs) == (run, "sow", [])


def lengthen(folder: Path) -> None:
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b"{")


def flip_head(folder: Path) -> None:
    path = folder / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b"mathematics", b"mathematicz"))


def flip_first_line(folder: Path) -> None:
    path = folder / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"run_started", b"run_startes", 1))


def other_format(folder: Path) -> None:
    """A whole first line that names a format; as long as before, so that only it can tell."""
    path = folder / "journal.jsonl"
    first, _, rest = path.read_bytes().partition(b"\n")
    for filler in range(len(first)):
        line = encode_line(1, "t", 1, b'{"kind":"run_started","format":2,"x":"%s"}' % (b"x" * filler))
        if len(line) == len(first) + 1:
            path.write_bytes(line + rest)
            return
    raise AssertionError("the first line is too short")


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "checkpoint.json").unlink(),
        lambda folder: (folder / "journal.jsonl").unlink(),
        lengthen,
        flip_head,
        flip_first_line,
        other_format,
    ],
)
def test_run_whose_head_cannot_be_trusted_is_read_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder = finished_run(tmp_path)
    harm(folder)
    asked = Asked(Head(folder.name, {"status": "failed"}))
    runs = listing(tmp_path, asked)
    assert [head.document for head in runs.heads()] == [{"status": "failed"}]
    assert asked.runs == [folder.name]
    assert list(runs.heads(lambda document: document["status"] == "completed")) == []


def test_folder_that_is_no_run_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert list(listing(tmp_path, Asked(None)).heads()) == []


def test_running_run_without_a_living_owner_is_seen_as_interrupted(tmp_path: Path) -> None:
    folder = finished_run(tmp_path)
    (folder / "checkpoint.json").unlink()
    asked = Asked(Head(folder.name, {"status": "in_progress", "status_detail": "running"}))
    (head,) = listing(tmp_path, asked).heads()
    assert (head.owned, head.document["status_detail"]) == (False, "interrupted")


def test_store_that_is_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a-file"
    path.write_text("x")
    with pytest.raises(StoreError, match="a-file"):
        list(FileStore(path, StillClock()).heads())


def test_run_that_is_a_link_now_is_said_and_another_name_for_a_run_is_not(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "runs", StillClock())
    runs, away = tmp_path / "runs", tmp_path / "away"
    kept, moved, gone = (finished_run(runs) for _ in range(3))
    away.mkdir()
    moved.rename(away / moved.name)
    moved.symlink_to(away / moved.name)
    gone.rename(away / "gone")
    gone.touch()
    (runs / "newest").symlink_to(kept.name)
    (runs / "notes").symlink_to(tmp_path)
    (runs / "mine").symlink_to(away / moved.name)
    (runs / "unmounted").symlink_to(tmp_path / "nowhere")
    heads = {head.run_id: bool(head.corrupt) for head in store.heads()}
    assert heads == {kept.name: False, moved.name: True, gone.name: True, "mine": True, "unmounted": True}
    assert {head.run_id for head in store.heads(lambda document: False)} >= {moved.name}


def test_folder_that_only_another_user_may_read_is_an_error_of_the_store(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.mkdir(mode=0o700)
    store = FileStore(root, StillClock())

    def said(look: Callable[[], object]) -> str:
        return f"{look()}"

    if os.geteuid() != 0:
        root.chmod(0)
    for look in (lambda: list(store.heads()), store.leftovers, lambda: store.sweep(AT)):
        assert as_other(partial(said, look)).startswith(f"StoreError: The store {root} cannot be read")
    root.chmod(0o700)
