"""The offline author: answers the requests of the lessons pipeline from the question bank, by code and for nothing.

What it reads is `request.data`, all plain JSON:
outline: {"kind", "course", "plan" or "lessons"} -> Outline;
entry: {"kind", "course", "entries", "order"} -> EntryDetails;
lesson: {"kind", "course", "entry", "entries"} -> Lesson, or {"not_written": outcome ids} where no topic of the bank is
about the entry. "course" is the pinned catalogue, "entries" are those of the outline or the scheme (a "scheme" or
"outline" that holds them will do), "entry" one of the scheme. The same data give the same text, in every process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.bank.topic import Bank
from pipeline.errors import ModelRejected
from pipeline.frameworks import region_of
from pipeline.lessons.drafting.details import details
from pipeline.lessons.drafting.lesson import lesson
from pipeline.lessons.drafting.outline import outline
from pipeline.lessons.drafting.region import localised
from pipeline.llm.base import ModelInfo, Reply, Request

#: Its name as a model, in replies and on pages.
OFFLINE = "offline"


class OfflineAuthor:
    """A Model that writes lessons from a question bank; it has no critic."""

    def __init__(self, bank: Bank | None = None) -> None:
        """Take the bank to write from: the one that is shipped, unless another is given."""
        self._bank = bank or Bank()

    def check(self) -> ModelInfo:
        """Say that it is free and needs no credential."""
        return ModelInfo(id=OFFLINE, paid=False, author="offline", provider=OFFLINE)

    def complete(self, request: Request) -> Reply:
        """Answer an outline, entry or lesson request.

        Raises:
            ModelRejected: Another kind of request, or data without a course.
        """
        text = json.dumps(answer(request.data, self._bank), ensure_ascii=False, sort_keys=False)
        return Reply(text=text, stop_reason="end_turn", usage={}, model=OFFLINE)

    def close(self) -> None:
        """Close nothing: nothing is open."""


def answer(data: Mapping[str, Any], bank: Bank | None = None) -> dict[str, Any]:
    """Return the JSON value that answers a request's data.

    Raises:
        ModelRejected: An unknown kind, or data that are missing.
    """
    kind = data.get("kind")
    try:
        if kind == "outline":
            return {"entries": outline(data["course"], data.get("plan"), int(data.get("lessons", 0)))}
        if kind == "entry":
            return details(data["course"], _entries(data), int(data["order"]))
        if kind == "lesson":
            written = lesson(bank or Bank(), data["course"], data["entry"], _entries(data))
            region = region_of(data["course"])
            own: dict[str, Any] = localised(written, region, int(data["entry"]["order"]))
            return own
    except KeyError as missing:
        raise ModelRejected(
            f"The offline author needs {missing} to answer a request for {kind}.", code="unanswerable_request"
        ) from None
    raise ModelRejected(f"The offline author does not answer requests of kind {kind!r}.", code="unanswerable_request")


def _entries(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key in ("entries", "scheme", "outline"):
        held = data.get(key)
        if isinstance(held, Mapping):
            held = held.get("entries")
        if isinstance(held, list):
            return held
    return []
