"""Files that people or other programs may have put there, and files that take the place of others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pipeline.files import create_new, read_regular, replace_file, write_over


def test_file_is_on_disk_before_it_takes_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def told(name: str, do: Any) -> Any:
        def does(*arguments: Any) -> Any:
            done.append(name)
            return do(*arguments)

        return does

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, told(name, getattr(os, name)))
    receipt = tmp_path / "receipt.json"
    receipt.write_bytes(b"old")
    replace_file(receipt, b"new")
    assert (done, receipt.read_bytes()) == (["fsync", "replace"], b"new")
    monkeypatch.setattr(os, "fsync", lambda fd: os.close(-1))
    with pytest.raises(OSError, match="Bad file"):
        replace_file(receipt, b"newer")
    assert (receipt.read_bytes(), list(tmp_path.iterdir())) == (b"new", [receipt])


def test_what_is_no_regular_file_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    secret, link, pipe = tmp_path / "secret", tmp_path / "link", tmp_path / "pipe"
    secret.write_bytes(b"mine")
    link.symlink_to(secret)
    os.mkfifo(pipe)
    os.close(create_new(link))
    assert (secret.read_bytes(), link.is_symlink()) == (b"mine", False)
    for refused in (pipe, tmp_path):
        with pytest.raises(OSError, match=r"regular file|directory"):
            read_regular(refused)
    with pytest.raises(OSError, match=r"regular file|No such device"):
        write_over(pipe, b"x")
    assert read_regular(secret, 2) == b"min"
