"""What a start says of the place where its runs are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.app.start import store_note
from pipeline.store import network


@pytest.mark.parametrize(("kind", "said"), [("nfs4", True), ("ext4", False)])
def test_store_note_warns_of_a_network_file_system(
    kind: str, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x / {kind} rw 0 0\n", encoding="ascii")
    monkeypatch.setattr(network, "_LINUX", mounts)
    note = store_note(f"files:{tmp_path}")
    assert ("network file system" in note) is said


def test_store_note_has_nothing_to_say_of_memory() -> None:
    assert store_note("memory:") == ""
