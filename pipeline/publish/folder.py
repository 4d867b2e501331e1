"""Published versions in a folder: built aside, named by their content, switched in one step.

    OUT/course_c84775            a link to the current version (a folder where links are not possible)
    OUT/course_c84775.receipt.json   cost, run and times of the last publish; in no hash
    OUT/.versions/course_c84775/HASH   the versions: the current one and the one before it

The manifest is a version's last file, so a version without one was never finished.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import PublishedFilesEdited, PublishError
from pipeline.files import check_regular, create_new, held, open_regular, parse_json, read_regular, replace_file
from pipeline.publish import manifest, site
from pipeline.publish.base import Bundle, Receipt, Standing

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")
_FILE = re.compile(r"[a-z0-9_-][a-z0-9._-]*(?:/[a-z0-9_-][a-z0-9._-]*){0,3}\Z")
_HASH = re.compile(r"[0-9a-f]{64}")
#: Part of the hash that names a version's folder.
_HASH_DIGITS = 32
_BUILDING = ".building"
#: Edited files named in an error.
_NAMED = 10


class FolderPublisher:
    """Publishes into a local folder."""

    def __init__(self, root: Path, *, build: Callable[[Bundle], Mapping[str, bytes]] = site.build) -> None:
        #: The output folder; made when something is published.
        self.root = Path(os.path.abspath(root))
        self._build = build

    def check(self, bundle_name: str = "", *, overwrite: bool = False) -> None:
        """Refuse a place that cannot be published to before hours of work end there; makes nothing.

        Args:
            bundle_name: What will be published; "": only the folder is looked at.

        Raises:
            PublishedFilesEdited: As publishing would.
            PublishError: The folder cannot be written, or what has that name is not ours; names it.
        """
        with writing(self.root):
            _check_writable(self.root)
            if not bundle_name:
                return
            check_plain(bundle_name)
            versions, receipt = self._versions(bundle_name), self._receipt(bundle_name)
            self._check_inside(versions)
            _check_writable(versions)
            for path in (versions / ".lock", receipt):
                # A receipt that is a link is replaced; a lock is opened.
                if os.path.lexists(path) and not (path == receipt and path.is_symlink()):
                    check_regular(os.lstat(path).st_mode, path)
            self._current(bundle_name, overwrite)

    def publish(self, bundle: Bundle, *, overwrite: bool = False) -> Receipt:
        _check_name(bundle)
        files = self._build(bundle)
        _check_files(files)
        made = manifest.make(bundle, files)
        shown, wanted = self.root / bundle.name, str(made["content_hash"])
        with writing(self.root), held(self._lock(bundle.name)):
            current = self._current(bundle.name, overwrite)
            new = current is None or not _is_intact(current, wanted)
            if new:
                version = self._version(bundle.name, wanted)
                if not version.exists():
                    self._make(version, files, made)
                previous = _switch(shown, version, self._versions(bundle.name)) or current
                self._forget(bundle.name, keep={version, previous})
            return Receipt(str(shown), wanted, len(files) + 1, new=new)

    def receipt(self, bundle_name: str, facts: Mapping[str, Any]) -> None:
        check_plain(bundle_name)
        data = json.dumps(facts, indent=1, sort_keys=True) + "\n"
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            replace_file(self._receipt(bundle_name), data.encode("utf-8"))

    def standing(self, bundle_name: str) -> Standing | None:
        check_plain(bundle_name)
        folder = self.root / bundle_name
        if not (folder / "index.html").exists():
            return None
        found = manifest.read(folder)
        content_hash = str(found["content_hash"]) if found else ""
        receipt = _read_json(self._receipt(bundle_name))
        run, run_hash = str(receipt.get("run_id") or ""), str(receipt.get("content_hash") or "")
        version = self._versions(bundle_name) / run_hash[:_HASH_DIGITS]
        kept = _HASH.fullmatch(run_hash) is not None and version.is_dir()
        return Standing(content_hash, run, run_hash, kept, tuple(_changes(folder)))

    def _versions(self, name: str) -> Path:
        return self.root / ".versions" / name

    def _receipt(self, name: str) -> Path:
        return self.root / f"{name}.receipt.json"

    def _check_inside(self, versions: Path) -> None:
        if not Path(os.path.realpath(versions)).is_relative_to(os.path.realpath(self.root)):
            raise PublishError(
                f"{versions} leads out of the output folder.", code="link_leads_out", hint="Remove that link."
            )

    def _current(self, name: str, overwrite: bool) -> Path | None:
        """Return the folder that is published now; refuse one that was edited."""
        shown = self.root / name
        if not os.path.lexists(shown):
            return None
        ours = Path(os.path.realpath(shown)).is_relative_to(os.path.realpath(self._versions(name)))
        if not ours and not (shown / manifest.MANIFEST).is_file():
            raise PublishError(
                f"{shown} exists and was not published by this program.",
                code="not_published_here",
                hint="Move it away, or choose another folder with --out DIR.",
                path=str(shown),
            )
        folder = Path(os.path.realpath(shown))
        if not folder.is_dir():
            return None
        found = _changes(folder)
        if found and not overwrite:
            raise _edited(shown, found)
        return folder

    def _version(self, name: str, content_hash: str) -> Path:
        """Return where the version of this hash is or will be: a folder that was edited is left alone."""
        base = self._versions(name) / content_hash[:_HASH_DIGITS]
        return _free(base, lambda candidate: _is_intact(candidate, content_hash))

    def _make(self, version: Path, files: Mapping[str, bytes], made: Mapping[str, Any]) -> None:
        """Build aside, the manifest last, everything on disk before the version gets its name."""
        building = version.parent / _BUILDING
        if building.is_symlink():
            building.unlink()
        elif building.exists():
            shutil.rmtree(building)
        folders = {building} | {(building / name).parent for name in files}
        for folder in sorted(folders):
            folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _write(building / name, data)
        _write(building / manifest.MANIFEST, manifest.encode(made))
        for folder in sorted(folders, reverse=True):
            _sync_folder(folder)
        os.rename(building, version)
        _sync_folder(version.parent)

    def _forget(self, name: str, keep: set[Path | None]) -> None:
        """Remove versions older than the one before; edited ones stay."""
        kept = {os.path.realpath(path) for path in keep if path is not None}
        for folder in sorted(self._versions(name).iterdir()):
            if folder.is_symlink() or not folder.is_dir() or os.path.realpath(folder) in kept:
                continue
            if folder.name == _BUILDING or not _changes(folder):
                shutil.rmtree(folder)

    def _lock(self, name: str) -> int:
        """Open the file whose lock holds off other publishes of a course."""
        versions = self._versions(name)
        versions.mkdir(parents=True, exist_ok=True)
        self._check_inside(versions)
        return open_regular(versions / ".lock", os.O_RDWR | os.O_CREAT)


@contextlib.contextmanager
def writing(root: Path) -> Iterator[None]:
    """Turn what the file system refuses below a folder into an error that names the way out.

    Raises:
        PublishError: Something cannot be written.
    """
    try:
        yield
    except OSError as error:
        where = Path(error.filename or root)
        reason = str(error.strerror or error)
        if isinstance(error, FileExistsError | NotADirectoryError):
            file = next((each for each in (where, *where.parents) if each.is_file()), None)
            reason = f"{'it' if file == where else file} is a file, not a folder" if file else reason
        raise PublishError(
            f"Cannot write {where}: {reason}.",
            code="cannot_write",
            hint="Make the folder writable and free some space, or choose another folder with --out DIR.",
            path=str(where),
        ) from error


def _check_writable(folder: Path) -> None:
    """Refuse a folder, there or still to be made, that nothing can be written into."""
    there = next(each for each in (folder, *folder.parents) if _exists(each))
    if not os.path.isdir(there):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "it may not be written", str(there))


def _exists(path: Path) -> bool:
    """Return whether something is there; a name that the file system refuses is an error, not an absence."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def check_plain(name: str) -> None:
    """Refuse what may not be the name of a course's folder.

    Raises:
        PublishError: It could lead elsewhere.
    """
    if not _NAME.match(name):
        raise PublishError(
            f"{name!r} is no name for a published course.", code="invalid_name", hint="Use letters, digits, - and _."
        )


def _check_name(bundle: Bundle) -> None:
    """Refuse a name that mixes drafts and finished courses: a draft never replaces a model's course."""
    check_plain(bundle.name)
    offline = bundle.about.get("author") == "offline"
    if bundle.draft != bundle.name.endswith("-draft") or (offline and not bundle.draft):
        raise PublishError(
            f"{bundle.name!r} mixes a draft with a finished course.",
            code="mixed_draft",
            hint="What the offline author wrote is a draft and its name ends in -draft; nothing else does.",
        )


def _check_files(files: Mapping[str, bytes]) -> None:
    for name in files:
        if not _FILE.match(name) or name == manifest.MANIFEST:
            raise PublishError(f"{name!r} is no file name inside a published course.", code="invalid_name")


def _read_json(path: Path) -> Mapping[str, Any]:
    """Return the object in a file; {} where there is none."""
    try:
        found = parse_json(read_regular(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_intact(folder: Path, content_hash: str) -> bool:
    found = manifest.read(folder)
    return found is not None and found["content_hash"] == content_hash and not manifest.edited(folder, found)


def _changes(folder: Path) -> list[str]:
    found = manifest.read(folder)
    return [f"{manifest.MANIFEST} (changed)"] if found is None else manifest.edited(folder, found)


def _edited(shown: Path, found: list[str]) -> PublishedFilesEdited:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return PublishedFilesEdited(
        f"Published files were edited by hand since the last publish, in {shown}: {', '.join(found[:_NAMED])}{more}.",
        hint="Copy your edits away, then publish again with --overwrite (the edited version is kept under .versions).",
        files=found,
        path=str(shown),
    )


def _switch(shown: Path, version: Path, versions: Path) -> Path | None:
    """Make `shown` the version. One rename where links exist; else two, with an instant between.

    Returns where a real folder that stood there has gone.
    """
    moved: Path | None = None
    aside = versions / ".link"
    if os.path.lexists(aside):
        aside.unlink()
    linked = False
    with contextlib.suppress(OSError):
        os.symlink(os.path.relpath(version, shown.parent), aside)
        linked = True
    if shown.is_dir() and not shown.is_symlink():
        moved = _free(versions / f"{_folder_hash(shown)}-folder")
        os.rename(shown, moved)
    if linked:
        os.replace(aside, shown)
    else:
        shown.unlink(missing_ok=True)
        os.rename(version, shown)
    _sync_folder(shown.parent)
    return moved


def _folder_hash(folder: Path) -> str:
    found = manifest.read(folder)
    return "edited" if found is None else str(found["content_hash"])[:_HASH_DIGITS]


def _free(path: Path, fits: Callable[[Path], bool] = lambda candidate: False) -> Path:
    """Return the path, or one with the first number behind it that is free or fits."""
    candidate, number = path, 1
    while candidate.exists() and not fits(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _write(path: Path, data: bytes) -> None:
    with open(create_new(path), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems cannot sync a folder; the data in it is synced.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
