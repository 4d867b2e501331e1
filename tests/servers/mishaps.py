"""What goes wrong, when: a plan of faults from a short text and a seed, or a queue for the next requests.

    rate_limit=0.1,cut=0.05,invalid=0.2      shares of all requests, drawn from the seed
    overloaded@3+7                           exactly the third and the seventh request

Faults of the transport are drawn by request number. Faults of the content are drawn by what was
asked, so that the same question has the same answer however often and in whatever order it is put:
a run that was killed and resumed must publish the same bytes. So a question that is refused is
refused for good, and a question that asks for a correction gets it: asked a third time, it may be
word for word the second.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from dataclasses import dataclass, field

#: Status, error type, error_code, retry-after, message.
STATUSES: dict[str, tuple[int, str, str | None, str | None, str]] = {
    "rate_limit": (429, "rate_limit_error", None, "0", "This request would exceed your rate limit."),
    "ramp_limit": (429, "rate_limit_error", "ramp_limit_exceeded", "0", "Usage rises too fast."),
    "spend_limit": (429, "rate_limit_error", "enforced_spend_limit_reached", None, "Spend limit reached."),
    "contract_limit": (429, "rate_limit_error", "contract_spend_limit_reached", None, "Contract limit reached."),
    "payment": (402, "billing_error", "linked_organization_spend_limit_reached", None, "Payment required."),
    "credit": (400, "invalid_request_error", None, None, "Your credit balance is too low to access the API."),
    "auth": (401, "authentication_error", None, None, "invalid x-api-key"),
    "forbidden": (403, "permission_error", None, None, "Your key may not use this model."),
    "bad_request": (400, "invalid_request_error", None, None, "prompt is too long"),
    "too_large": (413, "request_too_large", None, None, "Request exceeds the maximum size"),
    "timeout": (408, "timeout_error", None, None, "Request timed out."),
    "conflict": (409, "conflict_error", None, None, "Conflict."),
    "error500": (500, "api_error", None, None, "Internal server error"),
    "unavailable": (503, "api_error", None, None, "Service unavailable"),
    "overloaded": (529, "overloaded_error", None, None, "Overloaded"),
}
#: drop: answered and billed, but the connection is cut before a byte. cut: cut inside the stream. silent: the
#: stream ends in order, but early. stall: nothing more comes. malformed: a piece is no JSON. no_object:
#: a piece is JSON, but no object. error_event: an `error` event inside the stream.
STREAM = frozenset({"drop", "cut", "silent", "stall", "malformed", "no_object", "error_event"})
#: truncated: stops at max_tokens. refusal. invalid: not JSON. The rest is made by the responder.
CONTENT = frozenset({"truncated", "refusal", "invalid", "offplan", "wrong", "lowscore", "passlow"})
#: Faults of the content that the product answers by asking for a correction.
CORRECTED = CONTENT - {"truncated", "refusal"}
#: Kinds of call that a fault of the content makes sense for; others: all.
FITTING = {
    "offplan": frozenset({"outline", "entry", "lesson"}),
    "wrong": frozenset({"lesson"}),
    "lowscore": frozenset({"critic"}),
    "passlow": frozenset({"critic"}),
}
KINDS = frozenset(STATUSES) | STREAM | CONTENT


@dataclass(frozen=True)
class Mishap:
    """One fault."""

    kind: str
    #: Text of the retry-after header; None: as the kind says.
    retry_after: str | None = None
    #: Further response headers of an HTTP error.
    headers: dict[str, str] = field(default_factory=dict)
    #: The error's message; None: as the kind says.
    message: str | None = None
    #: Status of an HTTP error; None: as the kind says.
    status: int | None = None
    #: Body of an HTTP error, as a gateway's page; None: the provider's error document.
    page: str | None = None
    #: The request was answered and billed before its HTTP error.
    billed: bool = False
    #: Text pieces that come before a stream breaks.
    after: int = 1


class Plan:
    """Which request meets which fault. Thread-safe."""

    def __init__(self, spec: str = "", seed: int = 0) -> None:
        self._seed = seed
        self._shares: list[tuple[str, float]] = []
        self._numbers: dict[int, str] = {}
        self._queue: deque[Mishap | None] = deque()
        self._lock = threading.Lock()
        for part in filter(None, (text.strip() for text in spec.split(","))):
            self._read(part)

    def _read(self, part: str) -> None:
        kind, mark, value = part.partition("@") if "@" in part else part.partition("=")
        if kind not in KINDS or not mark:
            raise ValueError(f"{part!r} is no fault; kinds are {', '.join(sorted(KINDS))}")
        if mark == "=":
            self._shares.append((kind, float(value)))
        else:
            self._numbers.update({int(number): kind for number in value.split("+")})

    def queue(self, *mishaps: Mishap | str | None) -> None:
        """The next requests meet these, in order; None lets one pass."""
        with self._lock:
            self._queue.extend(Mishap(item) if isinstance(item, str) else item for item in mishaps)

    def draw(self, number: int, question: str, asked: str, label: str = "", correction: bool = False) -> Mishap | None:
        """The fault of a request.

        `question`: what was asked, without its token limit; `asked`: the whole body's hash; `label`: kind
        of call; `correction`: it asks for another version of an answer that was not accepted.
        """
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        if number in self._numbers:
            return Mishap(self._numbers[number])
        for kind, share in self._shares:
            if label not in FITTING.get(kind, {label}) or (correction and kind in CORRECTED):
                continue
            source = asked if kind == "truncated" else question if kind in CONTENT else str(number)
            if self._chance(kind, source) < share:
                return Mishap(kind)
        return None

    def _chance(self, kind: str, source: str) -> float:
        digest = hashlib.sha256(f"{self._seed}:{kind}:{source}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48
