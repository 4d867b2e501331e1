"""What never goes into a record or onto a screen: texts that look like credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KEY = re.compile(r"\bsk-ant-[\w\-]{6,}")
_SECRETS = (
    (re.compile(r"\bsk-[\w\-]{6,}"), "[key]"),
    # The base64 of user and password; "Basic mathematics" is a subject.
    (re.compile(r"\b[Bb]asic\s+(?=\S+[0-9A-Z=])[A-Za-z0-9+/]{8,}=*"), "Basic [key]"),
    (re.compile(r"(?i)\bbearer\s+[^\s\"',;]+"), "Bearer [key]"),
    (
        re.compile(r"(?i)((?:x-)?api[-_ ]?key|authorization|(?:auth|access)[-_ ]token)(\W{1,4})[^\s\"',;]{6,}"),
        r"\1\2[key]",
    ),
    (re.compile(r"://[^/@\s]+@"), "://"),
)


def without_keys(text: str) -> str:
    """The text with everything that looks like a credential replaced."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


def holds_key(value: Any) -> bool:
    """Whether a text, or a text in a list or mapping, holds one of Anthropic's keys."""
    if isinstance(value, str):
        return _KEY.search(value) is not None
    if isinstance(value, Mapping):
        return any(holds_key(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(holds_key, value))
