"""What the desk's own files may weigh, and that what is from elsewhere is what it says it is."""

from __future__ import annotations

import hashlib
import re

from pipeline.ui.layout import FOLDER

STATIC = FOLDER / "static"
#: htmx 4.0.1 and hx-sse as they were taken in, with their licence: whoever renews them renews this.
HTMX_SHA256 = "40dd07f96be2168c639afafeec29cf59235af1ecd2fce12566667a7f99a54019"
#: Of scripts and styles together, of the own script, of the style: bytes.
MOST_IN_ALL, MOST_SCRIPT, MOST_STYLE = 120_000, 9_728, 20_480


def test_scripts_and_styles_are_light() -> None:
    sizes = {path.name: path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".js", ".css")}
    assert sizes.keys() == {"desk.css", "desk.js", "htmx.js"}
    assert sum(sizes.values()) <= MOST_IN_ALL
    assert sizes["desk.js"] <= MOST_SCRIPT
    assert sizes["desk.css"] <= MOST_STYLE


def test_vendored_script_is_the_one_that_was_looked_at() -> None:
    assert hashlib.sha256((STATIC / "htmx.js").read_bytes()).hexdigest() == HTMX_SHA256


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in [STATIC / "desk.css", STATIC / "desk.js", *(FOLDER / "templates").iterdir()]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:src|href|action)=[\"']?(?:https?:)?//|@import|url\(\s*[\"']?(?:https?:)?//", text), (
            path
        )
