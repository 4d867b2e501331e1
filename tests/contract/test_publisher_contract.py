"""The publisher's contract over the folder publisher: whole versions, one switch, edits never lost, nothing outside."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PublishedFilesEdited, PublishError
from pipeline.publish import folder
from pipeline.publish.base import Bundle, Publisher
from pipeline.publish.folder import FolderPublisher
from pipeline.records.values import value_hash
from tests import publishing
from tests.codes import coded


def build(bundle: Bundle) -> Mapping[str, bytes]:
    """A tiny course; the version is told by the model's name."""
    page = f"<!DOCTYPE html><title>{bundle.about['model']}</title>".encode()
    return {"index.html": page, "lessons/01-a.html": page, "site.css": b"p{}"}


def bundle(model: str = "one", *, draft: bool = False) -> Bundle:
    made = publishing.bundle(draft=draft, lessons=1)
    return replace(made, about={**made.about, "model": model})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def publisher(out: Path) -> FolderPublisher:
    return FolderPublisher(out, build=build)


def files(shown: Path) -> dict[str, bytes]:
    """Every file a reader of the published folder can open."""
    return {str(path.relative_to(shown)): path.read_bytes() for path in sorted(shown.rglob("*")) if path.is_file()}


def shown_model(shown: Path) -> str:
    return (shown / "index.html").read_text().partition("<title>")[2].partition("<")[0]


def versions(out: Path, name: str = "course_c84775") -> list[str]:
    return sorted(path.name for path in (out / ".versions" / name).iterdir() if path.is_dir())


def test_folder_publisher_is_a_publisher(publisher: FolderPublisher) -> None:
    seam: Publisher = publisher
    assert seam.publish(bundle()).new


def test_publish_makes_a_folder_that_opens_by_its_name(publisher: FolderPublisher, out: Path) -> None:
    receipt = publisher.publish(bundle())
    assert receipt.path == str(out / "course_c84775")
    assert sorted(files(out / "course_c84775")) == ["index.html", "lessons/01-a.html", "manifest.json", "site.css"]
    assert receipt.files == 4
    assert receipt.new


def test_manifest_holds_hashes_prompts_and_model_and_covers_itself(publisher: FolderPublisher, out: Path) -> None:
    receipt = publisher.publish(bundle())
    manifest = json.loads((out / "course_c84775" / "manifest.json").read_text())
    assert manifest["content_hash"] == receipt.content_hash
    assert manifest["about"]["prompts"] == {"lesson": "a" * 64}
    assert manifest["about"]["model"] == "one"
    assert set(manifest["files"]) == {"index.html", "lessons/01-a.html", "site.css"}


def test_publish_twice_gives_the_same_receipt_and_writes_nothing(publisher: FolderPublisher, out: Path) -> None:
    first = publisher.publish(bundle())
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    second = publisher.publish(bundle())
    assert replace(second, new=True) == first
    assert not second.new
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.name != ".lock"} == {
        path: stamp for path, stamp in before.items() if path.name != ".lock"
    }


def test_publish_gives_the_same_bytes_in_another_folder(tmp_path: Path) -> None:
    made = publishing.bundle()
    receipts = [FolderPublisher(tmp_path / name).publish(made) for name in ("a", "b")]
    assert receipts[0].content_hash == receipts[1].content_hash
    assert files(tmp_path / "a" / made.name) == files(tmp_path / "b" / made.name)


def test_content_hash_changes_with_the_model_and_with_any_file(publisher: FolderPublisher, out: Path) -> None:
    first = publisher.publish(bundle("one"))
    other = FolderPublisher(out, build=lambda made: {**build(made), "extra.txt": b"x"})
    assert (
        len({first.content_hash, publisher.publish(bundle("two")).content_hash, other.publish(bundle()).content_hash})
        == 3
    )


def test_publish_syncs_each_file_before_its_version_has_a_name(
    publisher: FolderPublisher, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def noted(handle: int) -> None:
        fsync(handle)
        synced.add(os.fstat(handle).st_ino)

    def checked(source: Path, target: Path) -> None:
        missing = [path.name for path in (source, *source.rglob("*")) if path.stat().st_ino not in synced]
        assert missing == []
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", checked)
    assert publisher.publish(bundle()).new


def test_publish_keeps_the_version_before_and_no_older_one(publisher: FolderPublisher, out: Path) -> None:
    hashes = [publisher.publish(bundle(model)).content_hash[:32] for model in ("one", "two", "three")]
    assert shown_model(out / "course_c84775") == "three"
    assert versions(out) == sorted(hashes[1:])


def test_publish_of_the_version_before_switches_back(publisher: FolderPublisher, out: Path) -> None:
    for model in ("one", "two", "one"):
        publisher.publish(bundle(model))
    assert shown_model(out / "course_c84775") == "one"
    assert len(versions(out)) == 2


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda shown: (shown / "index.html").write_text("mine"), "index.html (changed)"),
        (lambda shown: (shown / "lessons/01-a.html").unlink(), "lessons/01-a.html (missing)"),
        (lambda shown: (shown / "photo.txt").write_text("x"), "photo.txt (added)"),
        (lambda shown: (shown / "manifest.json").write_text("{}"), "manifest.json (changed)"),
        (lambda shown: (shown / "manifest.json").unlink(), "manifest.json (changed)"),
    ],
    ids=["changed", "missing", "added", "manifest", "no manifest"],
)
@pytest.mark.parametrize("model", ["one", "two"])
def test_publish_over_edited_files_stops_and_names_them(
    publisher: FolderPublisher, out: Path, edit: Callable[[Path], Any], named: str, model: str
) -> None:
    shown = out / "course_c84775"
    publisher.publish(bundle())
    edit(shown)
    before = files(shown)
    with pytest.raises(PublishedFilesEdited) as caught:
        publisher.publish(bundle(model))
    assert named in caught.value.message
    assert caught.value.data["files"] == [named]
    assert "--overwrite" in caught.value.hint
    assert caught.value.exit_code == 7
    assert files(shown) == before


@pytest.mark.parametrize("model", ["one", "two"])
def test_publish_with_overwrite_goes_on_and_keeps_the_edited_version(
    publisher: FolderPublisher, out: Path, model: str
) -> None:
    shown = out / "course_c84775"
    publisher.publish(bundle())
    (shown / "index.html").write_text("mine")
    publisher.publish(bundle(model), overwrite=True)
    assert shown_model(shown) == model
    assert publisher.publish(bundle(model)).new is False
    for later in ("three", "four"):
        publisher.publish(bundle(later))
    kept = [path / "index.html" for path in (out / ".versions" / "course_c84775").iterdir() if path.is_dir()]
    assert "mine" in [path.read_text() for path in kept]


def test_what_file_managers_leave_behind_is_no_edit(publisher: FolderPublisher, out: Path) -> None:
    publisher.publish(bundle())
    (out / "course_c84775" / ".DS_Store").write_text("x")
    assert publisher.publish(bundle("two")).new


class Killed(BaseException):
    """Stands for a death at this instant."""


@pytest.mark.parametrize("at", ["write", "_switch", "_sync_folder", "rename"])
def test_publish_that_dies_leaves_the_old_version_whole_and_can_be_repeated(
    publisher: FolderPublisher, out: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    shown = out / "course_c84775"
    publisher.publish(bundle("one"))
    before = files(shown)

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if at == "write":
            original = folder._write
            patch.setattr(
                folder, "_write", lambda path, data: die() if path.name == "manifest.json" else original(path, data)
            )
        elif at == "rename":
            patch.setattr(os, "rename", die)
        else:
            patch.setattr(folder, at, die)
        with pytest.raises(Killed):
            publisher.publish(bundle("two"))
    assert files(shown) == before
    assert publisher.publish(bundle("two")).new
    assert shown_model(shown) == "two"
    assert len(versions(out)) == 2


def test_publish_never_shows_a_mixture(publisher: FolderPublisher, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = out / "course_c84775"
    publisher.publish(bundle("one"))
    seen: list[dict[str, bytes]] = []

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def first_look(*paths: Any) -> Any:
            seen.append(files(shown))
            return change(*paths)

        return first_look

    for name in ("rename", "replace", "symlink"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    publisher.publish(bundle("two"))
    seen.append(files(shown))
    assert len(seen) == 4
    assert [sorted(state) for state in seen] == [sorted(seen[0])] * 4
    assert len({tuple(state.items()) for state in seen}) == 2


def no_links(*_: object) -> None:
    raise PermissionError(1, "links are not possible here")


def test_publish_without_symlinks_uses_folders_under_the_same_rules(
    publisher: FolderPublisher, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "symlink", no_links)
    shown = out / "course_c84775"
    for model in ("one", "two", "three"):
        assert publisher.publish(bundle(model)).new
        assert shown_model(shown) == model
        assert not shown.is_symlink()
    assert not publisher.publish(bundle("three")).new
    kept = [(out / ".versions" / "course_c84775" / name / "index.html").read_text() for name in versions(out)]
    assert ["two" in page for page in kept] == [True]
    (shown / "index.html").write_text("mine")
    with pytest.raises(PublishedFilesEdited):
        publisher.publish(bundle("four"))
    publisher.publish(bundle("four"), overwrite=True)
    assert shown_model(shown) == "four"


def test_a_copied_course_becomes_a_link_again(publisher: FolderPublisher, out: Path) -> None:
    publisher.publish(bundle("one"))
    shown = out / "course_c84775"
    content = files(shown)
    shown.unlink()
    for name, data in content.items():
        (shown / name).parent.mkdir(parents=True, exist_ok=True)
        (shown / name).write_bytes(data)
    assert not publisher.publish(bundle("one")).new
    publisher.publish(bundle("two"))
    assert shown.is_symlink()
    assert shown_model(shown) == "two"


def test_publish_refuses_a_folder_that_somebody_else_made(publisher: FolderPublisher, out: Path) -> None:
    (out / "course_c84775").mkdir(parents=True)
    (out / "course_c84775" / "thesis.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(PublishError, check=coded("not_published_here")) as caught:
            publisher.publish(bundle(), overwrite=overwrite)
        assert "Move it away" in caught.value.hint
    assert (out / "course_c84775" / "thesis.txt").read_text() == "x"


def test_a_draft_never_replaces_a_course_made_by_a_model(publisher: FolderPublisher, out: Path) -> None:
    publisher.publish(bundle("claude"))
    publisher.publish(bundle("offline", draft=True))
    assert shown_model(out / "course_c84775") == "claude"
    assert shown_model(out / "course_c84775-draft") == "offline"
    with pytest.raises(PublishError, check=coded("mixed_draft")):
        publisher.publish(replace(bundle("offline", draft=True), name="course_c84775"))
    with pytest.raises(PublishError, check=coded("mixed_draft")):
        publisher.publish(replace(bundle("claude"), name="course_c84775-draft"))
    with pytest.raises(PublishError, check=coded("mixed_draft")):
        publisher.publish(replace(bundle(), about={"author": "offline", "model": "offline"}))


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".", "..", ".hidden", "/etc", "a\x00b", "x" * 200])
def test_publish_refuses_names_that_are_paths(publisher: FolderPublisher, out: Path, name: str) -> None:
    with pytest.raises(PublishError, check=coded("invalid_name")):
        publisher.publish(replace(bundle(), name=name))
    with pytest.raises(PublishError, check=coded("invalid_name")):
        publisher.receipt(name, {})
    assert not out.exists()


@pytest.mark.parametrize("name", ["../x.html", "/x.html", "a/../../x", "manifest.json", "A B.html", "a//b", ""])
def test_publish_refuses_files_that_would_stand_elsewhere(out: Path, name: str) -> None:
    with pytest.raises(PublishError, check=coded("invalid_name")):
        FolderPublisher(out, build=lambda _: {name: b"x"}).publish(bundle())
    assert not out.exists()


def test_publish_refuses_versions_that_lead_out_of_the_folder(
    publisher: FolderPublisher, out: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    out.mkdir()
    (out / ".versions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PublishError, check=coded("link_leads_out")):
        publisher.publish(bundle())


def test_publish_that_cannot_write_says_what_to_do(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(PublishError, check=coded("cannot_write")) as caught:
        FolderPublisher(blocked / "out", build=build).publish(bundle())
    assert "--out DIR" in caught.value.hint
    assert caught.value.exit_code == 7


def test_publish_on_a_full_disk_leaves_the_old_version(
    publisher: FolderPublisher, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.publish(bundle("one"))

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(folder, "_write", full)
        with pytest.raises(PublishError, check=coded("cannot_write")):
            publisher.publish(bundle("two"))
    assert shown_model(out / "course_c84775") == "one"


def test_receipt_stands_beside_the_course_outside_its_hash(publisher: FolderPublisher, out: Path) -> None:
    first = publisher.publish(bundle())
    for cost in (1.85, 2.5):
        publisher.receipt("course_c84775", {"cost_usd": cost, "run_id": "20260109_143022"})
    stated = json.loads((out / "course_c84775.receipt.json").read_text())
    assert stated == {"cost_usd": 2.5, "run_id": "20260109_143022"}
    assert replace(publisher.publish(bundle()), new=True) == first
    assert not [path for path in out.iterdir() if path.name.startswith(".course")]


def test_publish_leaves_a_relative_link_so_the_folder_can_move(publisher: FolderPublisher, out: Path) -> None:
    publisher.publish(bundle())
    moved = out.with_name("moved")
    out.rename(moved)
    assert shown_model(moved / "course_c84775") == "one"


def test_what_stands_is_told_with_its_run_and_its_edits(publisher: FolderPublisher, out: Path) -> None:
    assert publisher.standing("course_c84775") is None
    one = publisher.publish(bundle("one"))
    publisher.receipt("course_c84775", {"run_id": "1", "content_hash": one.content_hash})
    there = publisher.standing("course_c84775")
    assert there is not None
    assert (there.content_hash, there.run, there.run_hash, there.kept, there.edited) == (
        one.content_hash, "1", one.content_hash, True, (),
    )  # fmt: skip
    two = publisher.publish(bundle("two"))
    there = publisher.standing("course_c84775")
    assert there is not None
    assert (there.content_hash, there.run, there.run_hash, there.kept) == (
        two.content_hash,
        "1",
        one.content_hash,
        True,
    )
    publisher.publish(bundle("three"))
    there = publisher.standing("course_c84775")
    assert there is not None
    assert not there.kept
    (out / "course_c84775" / "site.css").write_text("mine")
    (out / "course_c84775.receipt.json").write_text("{")
    there = publisher.standing("course_c84775")
    assert there is not None
    assert (there.run, there.edited) == ("", ("site.css (changed)",))


def test_nothing_that_others_put_there_leads_a_write_out_of_the_folder(
    publisher: FolderPublisher, out: Path, tmp_path: Path
) -> None:
    versions = out / ".versions" / "course_c84775"
    mine, folder_of_mine = tmp_path / "mine.txt", tmp_path / "mine"
    folder_of_mine.mkdir()
    (versions / "x").mkdir(parents=True)
    (out / "course_c84775.receipt.json").symlink_to(mine)
    (out / f".course_c84775.receipt.json.{os.getpid()}").symlink_to(mine)
    (versions / ".building").symlink_to(folder_of_mine)
    (versions / ".link").symlink_to(mine)
    for leads_to in (mine, tmp_path / "new.txt", tmp_path / "pipe"):
        mine.write_text("mine")
        (versions / ".lock").unlink(missing_ok=True)
        if leads_to.name == "pipe":
            os.mkfifo(versions / ".lock")
        else:
            (versions / ".lock").symlink_to(leads_to)
        with pytest.raises(PublishError) as caught:
            publisher.publish(bundle())
        assert ".lock" in caught.value.message
    (versions / ".lock").unlink()
    publisher.publish(bundle())
    publisher.receipt("course_c84775", {"run_id": "x"})
    assert (mine.read_text(), os.listdir(folder_of_mine), (tmp_path / "new.txt").exists()) == ("mine", [], False)
    assert not (out / "course_c84775.receipt.json").is_symlink()


@pytest.mark.parametrize("junk", [5, [], "x", {"a": 5}, {"index.html": {"bytes": "x", "sha256": 1}}, float("nan")])
def test_manifest_and_receipt_of_any_content_are_read_without_an_error(
    publisher: FolderPublisher, out: Path, junk: Any
) -> None:
    publisher.publish(bundle())
    shown, receipt = out / "course_c84775", out / "course_c84775.receipt.json"
    known = json.loads((shown / "manifest.json").read_bytes())
    texts = [json.dumps({**known, name: junk}) for name in known] + [json.dumps(junk), "[" * 100_000]
    del known["content_hash"]
    for name in known if junk == junk else ():
        body = {**known, name: junk}
        texts.append(json.dumps({**body, "content_hash": value_hash(body)}))
    for text in texts:
        (shown / "manifest.json").write_text(text)
        receipt.write_text(text)
        publisher.standing("course_c84775")
        receipt.write_text(json.dumps({"run_id": junk, "content_hash": junk}))
        publisher.standing("course_c84775")
