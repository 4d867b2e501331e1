"""Answers of the test server as an author of lessons: what the offline author says to the same data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.servers.bill import blocks

_OPEN, _CLOSE = "<task_data>", "</task_data>"


def task_data(body: Mapping[str, Any]) -> dict[str, Any]:
    """The structured question at the end of the last user message; {} where there is none."""
    text = "".join(block["text"] for block in blocks(body["messages"][-1]["content"]))
    start = text.rfind(_OPEN)
    end = text.find(_CLOSE, start)
    if start < 0 or end < 0:
        return {}
    try:
        found = json.loads(text[start + len(_OPEN) : end])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
