"""The test server's Message Batches: taken, answered late and in any order, billed at half price when they end."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pipeline.clock import SystemClock
from tests.servers.api_rules import Invalid, check_message

_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KINDS = ("succeeded", "errored", "canceled", "expired")

#: Answers one request: the result object of the API.
Answer = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Held:
    """One batch."""

    id: str
    key: str
    requests: list[dict[str, Any]]
    created_at: datetime
    #: Looks that still see it in progress.
    looks: int
    canceled: bool = False
    #: Lists, looks and readings of results that do not show it yet.
    unlisted: int = 0
    unseen: int = 0
    unread: int = 0
    results: list[dict[str, Any]] | None = None


@dataclass
class Batches:
    """All batches of all keys. What a test changes may be changed while the server runs."""

    #: Looks after which a batch has ended.
    looks: int = 1
    #: Custom ids (by place in the batch) that end otherwise: place → errored, expired, canceled, invalid.
    ends: dict[int, str] = field(default_factory=dict)
    #: What happens to the next creations, one each: "drop" (created, the answer is lost), "late" (created after the
    #: answer was lost, on `appear`), "page" (created, a gateway answers 504), "odd" (created, a gateway's page with
    #: status 200), "refuse" (429), "lose" (503, not created), "" (nothing).
    creations: list[str] = field(default_factory=list)
    #: Batches of creations that were late: they are made by `appear`.
    late: list[tuple[Any, str]] = field(default_factory=list)
    #: Held back while set: the creation of every batch takes until it is cleared or the server stops.
    slow: threading.Event | None = None
    #: Of each new batch: lists, looks and readings of results that do not show it yet (404).
    unlisted: int = 0
    unseen: int = 0
    unread: int = 0
    #: Readings of results that end in order after half of the lines.
    halves: int = 0
    #: Ids of batches by key, in the order in which other keys asked for them.
    strangers: list[tuple[str, str]] = field(default_factory=list)
    #: Results are gone (older than 29 days).
    archived: bool = False
    held: dict[str, Held] = field(default_factory=dict)
    #: Most entries of one page of the list.
    page: int = 100
    lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, body: Any, key: str, models: Mapping[str, Any]) -> dict[str, Any]:
        """Take a batch.

        Raises:
            Invalid: Its form is wrong; wrong parameters of a request show only in its result.
        """
        requests = body.get("requests") if isinstance(body, dict) else None
        if not isinstance(requests, list) or not requests or set(body) != {"requests"}:
            raise Invalid("requests: a list of at least one request is required")
        names = [str(row.get("custom_id")) for row in requests]
        if len(set(names)) != len(names) or not all(_CUSTOM_ID.fullmatch(name) for name in names):
            raise Invalid("custom_id: must be unique, and 1 to 64 of A-Z, a-z, 0-9, _ and -")
        with self.lock:
            number = len(self.held) + 1
            held = Held(
                f"msgbatch_{number:06d}", key, requests, SystemClock().now(), self.looks,
                unlisted=self.unlisted, unseen=self.unseen, unread=self.unread,
            )  # fmt: skip
            self.held[held.id] = held
        for row in requests:
            row["invalid"] = _problem(row.get("params"), models)
        return self.document(held)

    def appear(self, models: Mapping[str, Any]) -> None:
        """Create the batches whose creation was late."""
        while self.late:
            self.create(*self.late.pop(0), models)

    def find(self, name: str, key: str) -> Held:
        """A batch of this key.

        Raises:
            Invalid: 404.
        """
        held = self.held.get(name)
        if held is not None and held.key != key:
            self.strangers.append((name, key))
        if held is None or held.key != key:
            raise Invalid(f"message batch {name} not found", 404, "not_found_error")
        return held

    def look(self, held: Held, answer: Answer) -> dict[str, Any]:
        """The batch as it is; a look brings its end nearer."""
        with self.lock:
            if held.unseen > 0:
                held.unseen -= 1
                raise Invalid(f"message batch {held.id} not found", 404, "not_found_error")
            if held.results is None and (held.looks <= 0 or held.canceled):
                held.results = self._end(held, answer)
            held.looks -= 1
        return self.document(held)

    def _end(self, held: Held, answer: Answer) -> list[dict[str, Any]]:
        rows = []
        for place, row in enumerate(held.requests):
            end = self.ends.get(place, "")
            if row["invalid"] or end == "invalid":
                result = _errored("invalid_request_error", row["invalid"] or "prompt is too long")
            elif end == "errored":
                result = _errored("api_error", "Internal server error")
            elif end == "expired" or held.canceled:
                result = {"type": "canceled" if held.canceled else "expired"}
            else:
                result = {"type": "succeeded", "message": answer(row["params"])}
            rows.append({"custom_id": row["custom_id"], "result": result})
        random.Random(held.id).shuffle(rows)
        return rows

    def read(self, held: Held) -> list[dict[str, Any]]:
        """The results of a batch that has ended.

        Raises:
            Invalid: 404.
        """
        with self.lock:
            if held.results is None or self.archived or held.unread > 0:
                held.unread -= 1
                raise Invalid("the results are not available", 404, "not_found_error")
            half, self.halves = self.halves > 0, max(self.halves - 1, 0)
            return held.results[: len(held.results) // 2] if half else held.results

    def list(self, key: str, after: str | None) -> dict[str, Any]:
        """Newest first, a page at a time."""
        found = []
        with self.lock:
            for held in reversed(self.held.values()):
                if held.key == key and held.unlisted <= 0:
                    found.append(held)
                held.unlisted -= held.key == key
        if after:
            found = found[[held.id for held in found].index(after) + 1 :]
        page = found[: self.page]
        return {
            "data": [self.document(held) for held in page],
            "has_more": len(found) > len(page),
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
        }

    def document(self, held: Held) -> dict[str, Any]:
        ended = held.results is not None
        counts = dict.fromkeys(("processing", *_KINDS), 0)
        if held.results is None:
            counts["processing"] = len(held.requests)
        for row in held.results or ():
            counts[row["result"]["type"]] += 1
        status = "ended" if ended else "canceling" if held.canceled else "in_progress"
        return {
            "id": held.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
            "created_at": held.created_at.isoformat(),
            "expires_at": (held.created_at + timedelta(hours=24)).isoformat(),
            "ended_at": held.created_at.isoformat() if ended else None,
            "cancel_initiated_at": held.created_at.isoformat() if held.canceled else None,
            "archived_at": held.created_at.isoformat() if self.archived else None,
            "results_url": f"/v1/messages/batches/{held.id}/results" if ended else None,
        }


def _problem(params: Any, models: Mapping[str, Any]) -> str:
    try:
        check_message(params, models)
    except Invalid as error:
        return str(error)
    return ""


def _errored(kind: str, message: str) -> dict[str, Any]:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_in_batch"}
    return {"type": "errored", "error": error}
