"""The folder itself: modes, links, other users' runs, half-built folders, documents without a journal, heads."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import CheckpointCorrupt, RunLocked, RunNotFound, StoreError
from pipeline.records.codec import decode_line
from pipeline.records.kinds import RunStarted, Snapshot, StepStarted
from pipeline.records.lines import encode_line
from pipeline.store import lock
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryAccount
from pipeline.store.network import linux_mounts, mac_mounts, mounted_at, network_note
from pipeline.store.owner import owner
from pipeline.store.reader import load
from pipeline.store.retention import cleanup
from tests.journals import AT, StillClock, ended, line, small_run, started
from tests.other_user import as_other

SEED: dict[str, Any] = {
    "run_id": "20260109_143022",
    "pipeline": "lessons",
    "subject": "mathematics",
    "level": "national_5",
    "course_id": "course_c84775",
    "status": "in_progress",
    "started_at": "2026-01-09T14:30:22Z",
    "updated_at": "2026-01-09T14:45:33Z",
    "completed_steps": [
        {"step": "seed", "status": "completed", "outputs": {"course_id": "course_c84775"}, "duration_seconds": 3},
        {
            "step": "sow",
            "status": "completed",
            "duration_seconds": 287,
            "outputs": {"sow_document_id": "68f1234...", "lesson_count": 18},
            "metrics": {"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85},
        },
    ],
    "last_completed_step": "sow",
    "next_step": "lessons",
    "total_cost_usd": 1.85,
    "total_tokens": 23654,
    "error": None,
    "a key of a newer version": [1, 2],
}


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def store(tmp_path: Path, clock: StillClock) -> FileStore:
    return FileStore(tmp_path / "runs", clock)


def place(store: FileStore, document: object, name: str = "20260109_143022") -> Path:
    folder = store.root / name
    folder.mkdir(parents=True)
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    (folder / "checkpoint.json").write_text(text)
    return folder


# --- modes, links, users --------------------------------------------------------------------------


def test_everything_is_for_its_owner_only(store: FileStore) -> None:
    run, journal = store.create(started(), [b"graph"], at=AT)
    journal.write_head({"status": "failed"}, True)
    journal.close()
    for path in (store.root, *store.root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert run in {path.name for path in store.root.iterdir()}


def test_links_are_not_followed_out_of_the_store(store: FileStore, tmp_path: Path) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    outside = tmp_path / "outside"
    (store.root / run).rename(outside)
    (store.root / run).symlink_to(outside)
    (head,) = store.heads()
    assert (head.run_id, dict(head.document), "link" in head.corrupt) == (run, {}, True)
    for verb in (store.open, store.read, store.delete):
        with pytest.raises(StoreError, match="link"):
            verb(run)
    assert (outside / "journal.jsonl").exists()


def test_linked_journal_is_not_followed(store: FileStore, tmp_path: Path) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    path = store.root / run / "journal.jsonl"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        store.open(run)
    with pytest.raises(StoreError):
        list(store.read(run))
    assert next(store.heads()).corrupt


def test_linked_blob_folder_is_not_written_through(store: FileStore, tmp_path: Path) -> None:
    run, journal = store.create(started(), [], at=AT)
    (tmp_path / "outside").mkdir()
    (store.root / run / "blobs").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError):
        journal.put_blob(b"x")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_run_of_another_user_is_refused(store: FileStore) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    os.chown(store.root / run, 12345, 12345)
    (head,) = store.heads()
    assert "12345" in head.corrupt
    for verb in (store.open, store.read, store.delete):
        with pytest.raises(StoreError, match="another user"):
            verb(run)


def test_store_that_does_not_exist_is_not_made_by_looking_and_foreign_files_are_no_runs(store: FileStore) -> None:
    assert list(store.heads()) == []
    with pytest.raises(RunNotFound):
        store.open("20260109_143022")
    assert not store.root.exists()
    run, _journal = store.create(started(), [], at=AT)
    (store.root / "account.jsonl").write_bytes(b"")
    (store.root / "empty").mkdir()
    (store.root / "notes").mkdir()
    (store.root / "notes" / "todo.txt").write_text("x")
    assert [head.run_id for head in store.heads()] == [run]


def test_store_that_is_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a-file"
    path.write_text("x")
    with pytest.raises(StoreError, match="a-file") as caught:
        list(FileStore(path, StillClock()).heads())
    assert caught.value.code == "store_unreadable"


def test_folder_that_only_another_user_may_read_is_an_error_of_the_store(store: FileStore) -> None:
    store.root.mkdir(mode=0o700)

    def said(look: Callable[[], object]) -> str:
        return f"{look()}"

    if os.geteuid() != 0:
        store.root.chmod(0)
    for look in (lambda: list(store.heads()), store.leftovers, lambda: store.sweep(AT)):
        assert as_other(partial(said, look)).startswith(f"StoreError: The store {store.root} cannot be read")
    store.root.chmod(0o700)


# --- half-built folders ---------------------------------------------------------------------------


def test_half_built_and_half_removed_folders_are_not_listed_and_swept_when_old(
    store: FileStore, clock: StillClock
) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    for name in (".new-1-ab", ".deleted-20250101_000000-cd", ".new-2-young"):
        folder = store.root / name
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(started())
        moment = (AT - timedelta(days=0 if "young" in name else 2)).timestamp()
        os.utime(folder, (moment, moment))
    assert [head.run_id for head in store.heads()] == [run]
    with pytest.raises(RunNotFound):
        store.open(".new-1-ab")
    cleanup(store, MemoryAccount(clock), max_age_days=10**14, max_runs=50, now=AT)
    assert sorted(path.name for path in store.root.iterdir()) == [".lock", ".new-2-young", run]


def test_cleanup_leaves_corrupt_runs_alone(store: FileStore, clock: StillClock) -> None:
    for _ in range(2):
        _run, journal = store.create(started(), [], at=AT - timedelta(days=90))
        journal.append(2, [ended(2, at=AT - timedelta(days=90))])
        journal.close()
    path = store.root / "20251011_143022" / "journal.jsonl"
    path.write_bytes(b"x" + path.read_bytes())
    assert cleanup(store, MemoryAccount(clock), max_age_days=1, max_runs=0, now=AT) == []
    assert path.exists()


# --- documents without a journal ------------------------------------------------------------------


def test_original_document_is_listed_and_read_as_it_stands_and_becomes_a_journal_when_it_is_opened(
    store: FileStore,
) -> None:
    folder = place(store, SEED)
    (head,) = store.heads()
    assert {**head.document, **SEED} == head.document
    assert (head.corrupt, head.owned) == ("", False)
    state = load(store, "20260109_143022")
    assert (list(state.steps), state.reported["cost_usd"]) == (["seed#1", "sow#1"], 1.85)
    assert [path.name for path in folder.iterdir()] == ["checkpoint.json"], "looking writes nothing"
    journal = store.open("20260109_143022")
    assert (journal.last_seq, list(journal.repairs)) == (2, [])
    first, second = map(decode_line, store.read("20260109_143022"))
    assert (first.at, second.at) == ("2026-01-09T14:30:22.000Z", "2026-01-09T14:45:33.000Z")
    assert isinstance(first.fact, RunStarted)
    assert (first.fact.pipeline, first.fact.params, first.fact.pins) == (
        "lessons", {"subject": "mathematics", "level": "national_5"}, {}
    )  # fmt: skip
    assert second.fact == Snapshot(SEED, "import")
    assert json.loads((folder / "checkpoint.json").read_text()) == SEED
    journal.close()
    (head,) = store.heads()
    assert (head.document["total_cost_usd"], head.document["a key of a newer version"]) == (1.85, [1, 2])
    assert store.open("20260109_143022").last_seq == 2


def test_head_copied_by_hand_is_taken_over_under_its_new_name(store: FileStore) -> None:
    run, journal = store.create(small_run()[0], [], at=AT)
    journal.append(2, small_run()[1:])
    document = dict(next(store.heads()).document)
    journal.write_head(document, True)
    journal.close()
    place(store, (store.root / run / "checkpoint.json").read_text(), "copy-by-hand")
    (copied,) = store.heads(lambda head: head["run_id"] == "copy-by-hand")
    assert copied.document["last_completed_step"] == "sow"
    store.open("copy-by-hand").close()
    state = load(store, "copy-by-hand")
    assert (state.identity, state.reported["cost_usd"]) == ({"author": "model"}, 1.85)


NO_STATES = [
    "", "{", "[]", "null", "{}", '{"status": "failed", "completed_steps": {}}', '{"completed_steps": [{}]}',
    '{"completed_steps": [{"step": "a", "outputs": 3}]}', '{"completed_steps": [{"step": "a", "path": "x"}]}',
    '{"completed_steps": [{"step": "a", "duration_seconds": "long"}]}', '{"status": "failed", "x": NaN}', "[" * 5000,
    *(json.dumps(SEED)[:length] for length in range(1, len(json.dumps(SEED)), 31)),
]  # fmt: skip


def test_document_that_is_no_state_or_cut_is_corrupt_and_left_alone(store: FileStore) -> None:
    folder = place(store, SEED)
    for text in NO_STATES:
        (folder / "checkpoint.json").write_text(text)
        (head,) = store.heads()
        assert (head.run_id, bool(head.corrupt)) == ("20260109_143022", True)
        with pytest.raises(CheckpointCorrupt):
            store.open("20260109_143022")
        assert (folder / "checkpoint.json").read_text() == text
        assert not (folder / "journal.jsonl").exists()


# --- owners ---------------------------------------------------------------------------------------


def test_lock_says_who_owns_the_run_and_is_never_removed(store: FileStore) -> None:
    run, journal = store.create(started(), [], at=AT)
    said = owner(store.root / run)
    assert (said["pid"], said["since"]) == (os.getpid(), "2026-01-09T14:30:22.000Z")
    assert said["host"]
    inode = (store.root / run / "lock").stat().st_ino
    journal.close()
    assert owner(store.root / run) == {}
    store.open(run).close()
    assert (store.root / run / "lock").stat().st_ino == inode


@pytest.mark.parametrize(
    ("change", "owned"),
    [({}, True), ({"started": "1"}, False), ({"pid": 2**22 + 1}, False), ({"boot": "another"}, False),
     ({"pid": "x"}, False), ({"host": "elsewhere"}, True)],
)  # fmt: skip
def test_owner_lives_if_its_process_does(
    store: FileStore, clock: StillClock, change: dict[str, Any], owned: bool
) -> None:
    run, journal = store.create(started(), [], at=AT)
    path = store.root / run / "lock"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    clock.at = AT.fromtimestamp((store.root / run / "journal.jsonl").stat().st_mtime, AT.tzinfo)
    (head,) = store.heads()
    assert head.owned is owned
    clock.at += timedelta(days=2)
    (head,) = store.heads()
    assert head.owned is (owned and not change), "an owner elsewhere that does nothing for a day counts as gone"
    journal.close()


def test_lock_with_unreadable_text_names_nobody(store: FileStore) -> None:
    run, journal = store.create(started(), [], at=AT)
    for text in (b"", b"\xff\0", b"[1]"):
        (store.root / run / "lock").write_bytes(text)
        assert next(store.heads()).owned is False
        with pytest.raises(StoreError, match="another process"):
            store.open(run)
    journal.close()


def test_refusal_names_an_owner_that_has_only_just_taken_the_lock(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, journal = store.create(started(), [], at=AT)
    path = store.root / run / "lock"
    text = path.read_bytes()
    path.write_bytes(b"")

    def look(folder: Path) -> dict[str, Any]:
        found = owner(folder)
        # The other process writes its name after the first look.
        path.write_bytes(text)
        return found

    monkeypatch.setattr(lock, "owner", look)
    with pytest.raises(RunLocked) as caught:
        store.open(run)
    assert caught.value.data["pid"] == os.getpid()
    journal.close()


# --- network file systems -------------------------------------------------------------------------

MOUNTS = "/dev/sda / ext4 rw 0 0\nsrv:/x /home/my\\040runs nfs4 rw\n/dev/sdb /home/my\\040runs/local xfs rw\nodd"
MAC = "/dev/disk1s1 on / (apfs, local, journaled)\n//me@nas/share on /Volumes/share (smbfs, nodev)\nodd\n"


def test_network_file_systems_are_recognised_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linux, mac = linux_mounts(MOUNTS), mac_mounts(MAC)
    assert mounted_at(Path("/home/my runs/a"), linux) == ("/home/my runs", "nfs4")
    assert mounted_at(Path("/home/my runs/local/a"), linux) == ("/home/my runs/local", "xfs")
    assert mounted_at(Path("/home/my runs2"), linux) == ("/", "ext4")
    assert mounted_at(Path("/Volumes/share/runs"), mac) == ("/Volumes/share", "smbfs")
    assert network_note(Path("/proc")) == ""
    rows = tmp_path / "mounts"
    rows.write_text(f"srv:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr("pipeline.store.network._LINUX", rows)
    assert "nfs" in network_note(tmp_path)
    assert network_note(Path("/")) == ""


def test_record_that_makes_no_sense_is_a_gap_and_hides_nothing(store: FileStore) -> None:
    odd, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(2, StepStarted("a path without a visit"))])
    fine, _journal = store.create(started(), [], at=AT)
    assert {head.run_id: head.corrupt for head in store.heads()} == {fine: "", odd: ""}
    assert [gap["reason"] for gap in load(store, odd).gaps] == ["a step_started that is inconsistent"]


def test_line_after_a_first_line_that_is_no_start_is_corrupt(store: FileStore) -> None:
    run, journal = store.create(line(1, Snapshot({})), [], at=AT)
    journal.close()
    assert "does not start" in next(store.heads()).corrupt
    with pytest.raises(CheckpointCorrupt):
        store.open(run)


def test_whole_line_that_is_no_record_is_a_gap_too(store: FileStore) -> None:
    for odd in (b'{"kind":"gap","at":3}', b'{"kind":"gap","owner":null}', b'{"kind":7}'):
        run, journal = store.create(started(), [], at=AT)
        journal.append(2, [encode_line(2, "2026-01-09T14:30:22.000Z", 1, odd)])
        assert [(gap["first"], gap["last"]) for gap in load(store, run).gaps] == [(2, 2)]
        journal.append(3, [line(3, StepStarted("a#1"))])
        assert [(gap["first"], gap["last"]) for gap in load(store, run).gaps] == [(2, 2)]


def test_journal_that_is_a_folder_is_a_store_error(store: FileStore) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    (store.root / run / "journal.jsonl").unlink()
    (store.root / run / "journal.jsonl").mkdir()
    for use in (lambda: list(store.read(run)), lambda: store.open(run)):
        with pytest.raises(StoreError):
            use()
