"""The guide to the desk: its paths and bounds are those of the code."""

from __future__ import annotations

from pipeline.ui import export, guard, routes, server, stream
from tests.documents import codes, table, text_of

GUIDE = "ui.md"


def test_docs_name_every_path_that_answers_json() -> None:
    told = [(codes(row[0])[0], row[1]) for row in table(GUIDE, "Path", "Name", "Answers")]
    assert told == [(f"{routes.API}{page.path}", page.name) for page in routes.PAGES]


def test_docs_tell_the_bounds_of_the_code() -> None:
    text = text_of(GUIDE)
    assert f"At most {guard.MOST_BYTES >> 20} MB" in text
    assert f"http://127.0.0.1:{server.PORT}/" in text
    assert f"{export.MOST_PAGES:,} pages" in text
    assert f"After {stream.BEAT:.0f} s of silence" in text
    assert guard.HEADERS["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
