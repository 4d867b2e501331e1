"""Copies of runs as files: whole, read-only, and with links that hold where they lie."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pipeline.errors import ConfigError, RunNotFound
from pipeline.ui import export as exports
from pipeline.ui.export import export
from tests.pages import read
from tests.sample_runs import completed_run, corrupt_run, dead_run, failed_run, original_run

WHEN = "28 Nov 2026 20:14 UTC"


def test_copy_holds_the_pages_of_its_runs_alone_and_every_link_leads_to_a_file(root: Path, tmp_path: Path) -> None:
    runs = [failed_run(root), original_run(root)]
    other = completed_run(root)
    folder = tmp_path / "copy"

    pages, left_out = export(f"files:{root}", folder, ["20260109", *runs], WHEN)

    written = sorted(folder.rglob("*.html"))
    assert (pages, left_out) == (len([path for path in folder.rglob("*") if path.is_file()]) - 2, 0)
    assert (folder / f"runs/{runs[0]}.html") in written
    for path in written:
        text = path.read_text(encoding="utf-8")
        page = read(text.encode())
        assert other not in text
        assert f"Copy of {WHEN}" in text
        assert list(page.all("script", "form")) == [], path
        assert all(frame.attributes["src"].endswith(".html") for frame in page.all("iframe"))
        assert all(frame.attributes["sandbox"] == "" for frame in page.all("iframe"))
        assert [link for link in page.all("a") if link.attributes.get("href") == "#" and "Review" in link.text] == []
        for element in page.all():
            for name in ("href", "src"):
                target = urlsplit(element.attributes.get(name, ""))
                if element.tag == "use" or not target.path:
                    continue
                assert not target.scheme, (path, target)
                assert (path.parent / unquote(target.path)).is_file(), (path, target)


def test_copy_of_a_damaged_run_says_so(root: Path, tmp_path: Path) -> None:
    run = corrupt_run(root)
    export(f"files:{root}", tmp_path / "copy", [run], WHEN)
    text = (tmp_path / "copy/index.html").read_text(encoding="utf-8")
    assert f"{run}</a>  cannot be read" in text
    assert "$0.00" not in text


def test_copy_says_how_its_runs_stand_and_what_they_cost(root: Path, tmp_path: Path) -> None:
    run, dead = failed_run(root), dead_run(root)
    export(f"files:{root}", tmp_path / "copy", [run, dead], WHEN)
    text = (tmp_path / "copy/index.html").read_text(encoding="utf-8")
    assert f"{run}</a> Mathematics, National 5, failed, $0.15" in text
    assert f"{dead}</a> Physics, Higher, process is gone" in text


def test_copy_stops_at_a_number_of_pages(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = failed_run(root)
    monkeypatch.setattr(exports, "MOST_PAGES", 1)
    pages, left_out = export(f"files:{root}", tmp_path / "copy", [run], WHEN)
    assert pages == 2
    assert left_out > 0


def test_copy_goes_into_a_new_folder_only(root: Path, tmp_path: Path) -> None:
    run = failed_run(root)
    with pytest.raises(ConfigError, match="not empty"):
        export(f"files:{root}", tmp_path, [run], WHEN)
    with pytest.raises(RunNotFound):
        export(f"files:{root}", tmp_path / "copy", ["nothing"], WHEN)
    assert not (tmp_path / "copy").exists()
