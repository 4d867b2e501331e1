"""What no tracked file may hold: addresses of package indexes, paths of one machine; and what the pins must hold."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from pipeline.extras import ALIASES
from tests.longest import FIRST, SOURCE_READERS, UNCOUNTED
from tests.tiers import LONG

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "devops" / "requirements"

#: Written so that this file does not hold what it looks for.
FORBIDDEN = {
    "the address of a package index": re.compile(
        r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|deb[.]debian[.]org|index[-]url +\w+:|find[-]links +\w+:"
    ),
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:work|tmp/w|root|opt/(?:wheels|pypi))/\w"),
    "the mark of an unfinished merge": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}


@cache
def _tracked() -> tuple[tuple[str, str], ...]:
    """The text files that git knows, as (path below the root, text)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        assert not os.environ.get("CI"), listed.stderr.decode()
        pytest.skip("this copy of the project is not a git repository")
    found = []
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file():
            found.append((name, path.read_text(encoding="utf-8", errors="replace")))
    return tuple(found)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_tracked_files_do_not_hold(what: str) -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r}"
        for name, text in _tracked()
        for match in FORBIDDEN[what].finditer(text)
    ]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("the address of a package index", "pip install from pypi" + ".org"),
        ("a path of one machine", "see /ro" + "ot/notes"),
        ("the mark of an unfinished merge", "a\n" + "<" * 7 + " HEAD"),
    ],
)
def test_the_search_finds_what_it_looks_for(what: str, text: str) -> None:
    assert FORBIDDEN[what].search(text)


def test_no_tracked_file_is_a_lock_of_uv() -> None:
    assert [name for name, _ in _tracked() if Path(name).name == "uv.lock"] == []


def test_links_between_the_documents_lead_somewhere() -> None:
    broken = []
    for name, text in _tracked():
        if not name.endswith(".md") or name.startswith("pipeline/"):
            continue
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if "://" not in target and not (ROOT / name).parent.joinpath(target).exists():
                broken.append(f"{name}: {target}")
    assert not broken, "\n".join(["", *broken])


def test_listed_files_of_tests_are_there() -> None:
    assert [name for name in (*FIRST, *SOURCE_READERS, *UNCOUNTED, *LONG) if not (ROOT / name).exists()] == []


# --- pins -----------------------------------------------------------------------------------------


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pins(lock: str) -> dict[str, list[tuple[str, list[str]]]]:
    """What a lock file pins: name → (version, hashes), more than once where Pythons need other versions."""
    text = (LOCKS / lock).read_text(encoding="utf-8")
    rows = re.findall(r"^([\w.-]+)==(\S+)[^\n]*\\\n((?:    --hash=\S+(?: \\)?\n)+)", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert len(lines) == len(rows), "a line of the lock file is not a pin with hashes"
    pinned: dict[str, list[tuple[str, list[str]]]] = {}
    for name, version, hashes in rows:
        pinned.setdefault(name, []).append((version, re.findall(r"--hash=(\S+)", hashes)))
    return pinned


#: The lock files of `./pipeline.sh install EXTRA`.
EXTRA_LOCKS = sorted(path.name for path in LOCKS.glob("*.txt") if path.stem not in ("core", "test"))


@pytest.mark.parametrize("lock", ["core.txt", "test.txt", *EXTRA_LOCKS])
def test_pins_are_exact_and_hashed(lock: str) -> None:
    for name, version, hashes in ((name, *pin) for name, pins in _pins(lock).items() for pin in pins):
        assert re.fullmatch(r"[\w.+!]+", version), name
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", item) for item in hashes), name


def test_pins_of_the_tests_are_those_of_the_users() -> None:
    test = _pins("test.txt")
    for lock in ("core.txt", *EXTRA_LOCKS):
        pins = _pins(lock)
        assert {name: test.get(name) for name in pins} == pins, lock


def test_pins_cover_what_the_project_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = declared["project"]["optional-dependencies"]
    assert [f"{name}.txt" for name in sorted(extras) if name not in ALIASES] == EXTRA_LOCKS
    for lock, wanted in (
        ("core.txt", declared["project"]["dependencies"]),
        ("test.txt", declared["dependency-groups"]["test"]),
        *((lock, extras[lock.removesuffix(".txt")]) for lock in EXTRA_LOCKS),
    ):
        names = {_canonical(re.split(r"[<>=!~\[; ]", requirement)[0]) for requirement in wanted}
        assert names <= set(_pins(lock)), lock
