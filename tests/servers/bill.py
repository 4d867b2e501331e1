"""The test server's own bill: counts tokens, simulates the prompt cache and prices both, apart from the product.

Nothing here may import the product's cost package: the point is to compare two independent sums.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

#: USD per million tokens: input, output, cache read, 5-minute write, 1-hour write.
PRICES: dict[str, tuple[str, str, str, str, str]] = {
    "claude-sonnet-5-5": ("2", "10", "0.10", "2.5", "4"),
    "claude-haiku-5-5": ("0.10", "0.50", "0.01", "0.125", "0.2"),
    "claude-opus-5-5": ("4", "20", "0.20", "5", "8"),
}
#: Above this many input tokens every token of this model costs five times as much.
LONG_CONTEXT = {"claude-haiku-5-5": 100_000}
#: Prefixes shorter than this are not cached.
CACHE_MINIMUM = 1024
#: Framing of a request, in tokens.
OVERHEAD = 12


def tokens_of(text: str) -> int:
    """A deterministic count: one token for four bytes begun."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def body_hash(body: Mapping[str, Any]) -> str:
    """Equal requests have equal hashes."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def blocks(content: Any) -> list[dict[str, Any]]:
    """Content as blocks: plain text is one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _pieces(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Text pieces in the order the provider renders them, with their cache mark."""
    for block in blocks(body.get("system") or []):
        yield block["text"], block.get("cache_control")
    for turn in body["messages"]:
        for block in blocks(turn["content"]):
            yield turn["role"] + block["text"], block.get("cache_control")


@dataclass
class Counted:
    """The input of one request."""

    input_tokens: int
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    #: Prefixes to remember once the reply has begun.
    prefixes: list[str] = field(default_factory=list)

    @property
    def prompt(self) -> int:
        return self.input_tokens + self.read + self.write_5m + self.write_1h

    def usage(self, output_tokens: int) -> dict[str, Any]:
        """As the provider reports it: `input_tokens` without the cache."""
        return {
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.write_5m + self.write_1h,
            "cache_read_input_tokens": self.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
            "output_tokens": output_tokens,
            "service_tier": "standard",
            "inference_geo": "not_available",
        }


class PromptCache:
    """Which prefixes the provider holds. Entries appear when a reply begins, so parallel firsts all pay the write."""

    def __init__(self, *, marks: bool = True) -> None:
        """An empty cache; without `marks` it takes no notice of them, as if the request had none."""
        self._marks = marks
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def count(self, body: Mapping[str, Any]) -> Counted:
        """Split a request's input into uncached, read and written tokens."""
        fmt = (body.get("output_config") or {}).get("format")
        total = OVERHEAD + (tokens_of(json.dumps(fmt)) if fmt else 0)
        digest = hashlib.sha256(json.dumps([body["model"], body.get("output_config")], sort_keys=True).encode())
        marks: list[tuple[str, int, str]] = []
        for text, mark in _pieces(body):
            total += tokens_of(text)
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
            if mark is not None and self._marks and total >= CACHE_MINIMUM:
                marks.append((digest.hexdigest(), total, str(mark.get("ttl", "5m"))))
        with self._lock:
            read = max((size for key, size, _ in marks if key in self._held), default=0)
        written = {"5m": 0, "1h": 0}
        reached = read
        for _, size, ttl in marks:
            if size > reached:
                written[ttl] += size - reached
                reached = size
        return Counted(total - reached, read, written["5m"], written["1h"], [key for key, _, _ in marks])

    def remember(self, counted: Counted) -> None:
        with self._lock:
            self._held.update(counted.prefixes)


def cost(model: str, counted: Counted, output_tokens: int) -> Decimal:
    """What the provider charges for these tokens, in USD, exactly."""
    input_price, output_price, read, short, long = (Decimal(price) for price in PRICES[model])
    micro = (
        counted.input_tokens * input_price
        + counted.read * read
        + counted.write_5m * short
        + counted.write_1h * long
        + output_tokens * output_price
    )
    if counted.prompt > LONG_CONTEXT.get(model, 10**9):
        micro *= 5
    return micro / Decimal(1_000_000)


@dataclass
class Entry:
    """One request the server saw."""

    number: int
    body_hash: str
    model: str
    label: str
    fault: str = ""
    #: False while it is being answered.
    done: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "usd": str(self.usd)}


class Bill:
    """Every request and what it costs, from the provider's side."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._in_flight = 0
        self._most = 0

    def open(self, body: Mapping[str, Any], digest: str, label: str) -> Entry:
        with self._lock:
            entry = Entry(len(self._entries) + 1, digest, str(body.get("model")), label)
            self._entries.append(entry)
            self._in_flight += 1
            self._most = max(self._most, self._in_flight)
            return entry

    def charge(self, entry: Entry, counted: Counted, output_tokens: int, *, batch: bool = False) -> None:
        """Set (not add) what the request costs as it stands; half of it in a batch."""
        with self._lock:
            entry.input_tokens = counted.prompt
            entry.output_tokens = output_tokens
            entry.usd = cost(entry.model, counted, output_tokens) / (2 if batch else 1)

    def end(self, entry: Entry) -> None:
        with self._lock:
            entry.done = True
            self._in_flight -= 1

    @property
    def usd(self) -> Decimal:
        with self._lock:
            return sum((entry.usd for entry in self._entries), Decimal(0))

    @property
    def requests(self) -> int:
        with self._lock:
            return len(self._entries)

    @property
    def in_flight(self) -> int:
        with self._lock:
            return self._in_flight

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)

    def to_json(self) -> dict[str, Any]:
        """For GET /_bill: the sum, counts, every request. `repeated`: requests whose body had been sent before."""
        with self._lock:
            entries = list(self._entries)
            return {
                "usd": str(sum((entry.usd for entry in entries), Decimal(0))),
                "requests": len(entries),
                "in_flight": self._in_flight,
                "most_in_flight": self._most,
                "repeated": len(entries) - len({entry.body_hash for entry in entries}),
                "log": [entry.to_json() for entry in entries],
            }
