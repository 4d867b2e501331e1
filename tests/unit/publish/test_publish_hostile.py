"""Text that a model wrote to mislead a reader: no link, no hidden or reordered characters on any page or file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from pipeline.cli.text import for_stream
from pipeline.publish import site
from pipeline.records.redaction import printable, visible
from tests import publishing

HIDDEN = "\u202e\u2066\u200b\u2060\ufeff\u00ad\u2028\u2029\u061c\u200d\U000e0041\ufff9\u3164"
LINKS = (
    "[x](javascript:alert(1)) ![y](//host/a.png) [z](data:text/html,x) [x\\](javascript:1) [x\\\\](javascript:2) "
    "[a][b]\n[b]: javascript:3\n<javascript:4> \\(\\href{javascript:5}{x}\\) \\(x^2\\) "
    "` \\(\\href{1}{x}[x](//host) http://host\\) \\([x](//host)\\) \\([x][b]\\) "
    "http://host/x HTTPS://host ftp://host www.host.com mailto:me@host.com me@host.com"
)
KEPT = "naïve −5 × ½ e\u0301 £2 “q” שלום 👨\u200d👩 می\u200cخواهم \u202f[1, 2)"


def spoilt(value: Any) -> Any:
    """The value with the text in every sentence of it."""
    if isinstance(value, dict):
        return {key: spoilt(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spoilt(item) for item in value]
    return f"{value} {HIDDEN}{LINKS} {KEPT}" if isinstance(value, str) and " " in value else value


def test_no_published_file_holds_a_link_or_a_hidden_character_of_the_model() -> None:
    bundle = publishing.bundle(lessons=2)
    files = site.build(replace(bundle, lessons=spoilt(bundle.lessons), scheme=spoilt(bundle.scheme)))
    assert files == site.build(replace(bundle, lessons=spoilt(bundle.lessons), scheme=spoilt(bundle.scheme)))
    hidden = re.compile(f"[{HIDDEN.replace(chr(0x200D), '')}]")
    for name, data in files.items():
        text = data.decode()
        text = json.dumps(json.loads(text), ensure_ascii=False) if name.endswith(".json") else text
        assert not hidden.search(text), name
        if name.endswith(".md"):
            assert not re.search(r"\](\(|\[|:)", text), name
            assert "<javascript" not in text
            assert not re.search(r"\w://|www\.|mailto:|\w@\w", text, re.IGNORECASE), name
            assert "\\(\\href" not in text
            assert "\\(x^2\\)" in text
            assert "−5 × ½" in text
        if name.endswith(".html"):
            assert not re.search(r"(href|src)=\"(?!\.\./|[a-z0-9#]|\")", text, re.IGNORECASE), name


@pytest.mark.parametrize("text", [KEPT, "plain", "x² − 3x ≤ 4", "Ελληνικά", "日本語", "👩🏽‍🔬", "נִקּוּד", "हिन्दी"])
def test_text_that_people_read_passes_as_it_is(text: str) -> None:
    assert visible(text) == printable(text) == for_stream(text, ascii_only=False) == text


def test_a_terminal_gets_neither_commands_nor_hidden_characters() -> None:
    assert for_stream(f"a\x1b[31m\r\x9b{HIDDEN}b\tc\nd", ascii_only=False) == "a[31m  b\tc\nd"
