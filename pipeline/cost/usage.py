"""Raw usage → billed tokens by kind: disjoint buckets, nothing counted twice. Knows no prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Billed beside tokens, per request of the tool.
WEB_SEARCH = "web_search"
#: Tool requests that cost nothing beyond their tokens.
_FREE_TOOLS = frozenset({"web_fetch_requests"})

#: No single reply bills more of anything.
_MOST = 10**12


class UsageUnreadable(ValueError):
    """The usage object does not say how many tokens were billed."""


@dataclass(frozen=True, slots=True)
class Billed:
    """What a usage object says was billed."""

    #: By token kind (TOKEN_KINDS) and WEB_SEARCH; zero entries left out, but for input and output.
    tokens: Mapping[str, int]
    #: All input: uncached, written and read. Decides long-context prices.
    prompt: int
    #: standard, batch, priority.
    tier: str
    fast: bool
    #: "" where the place of inference does not matter to the price.
    geo: str
    #: Things billed that this program has no unit for ("code_execution_requests").
    unknown: tuple[str, ...] = ()


def billed(usage: Mapping[str, Any], tier: str | None = None) -> Billed:
    """Read a raw usage object.

    `input_tokens` excludes the cache. The breakdown of cache writes by lifetime replaces their
    total; what the total holds beyond it was written for five minutes.

    Args:
        tier: The tier where it is known otherwise (a batch); None: as the usage says.

    Raises:
        UsageUnreadable: Input or output tokens are missing, or a figure is no whole number that it can be.
    """
    if "input_tokens" not in usage or "output_tokens" not in usage:
        raise UsageUnreadable("the reply's usage has no input_tokens or output_tokens")
    short, long = _writes(usage)
    tokens = {
        "input": _count(usage, "input_tokens"),
        "cache_write_5m": short,
        "cache_write_1h": long,
        "cache_read": _count(usage, "cache_read_input_tokens"),
        "output": _count(usage, "output_tokens"),
    }
    prompt = sum(count for kind, count in tokens.items() if kind != "output")
    searches, unknown = _tools(usage.get("server_tool_use"))
    tokens[WEB_SEARCH] = searches
    geo = str(usage.get("inference_geo") or "").lower()
    return Billed(
        tokens={kind: count for kind, count in tokens.items() if count or kind in ("input", "output")},
        prompt=prompt,
        tier=tier or str(usage.get("service_tier") or "standard"),
        fast=usage.get("speed") == "fast",
        geo="" if geo in ("global", "not_available") else geo,
        unknown=unknown,
    )


def _writes(usage: Mapping[str, Any]) -> tuple[int, int]:
    total = _count(usage, "cache_creation_input_tokens")
    split = usage.get("cache_creation")
    if not isinstance(split, Mapping):
        return total, 0
    long = _count(split, "ephemeral_1h_input_tokens")
    short = _count(split, "ephemeral_5m_input_tokens")
    return max(short, total - long), long


def _tools(usage: Any) -> tuple[int, tuple[str, ...]]:
    if not isinstance(usage, Mapping):
        return 0, ()
    counts = {name: _count(usage, name) for name in usage}
    searches = counts.pop("web_search_requests", 0)
    return searches, tuple(sorted(name for name, count in counts.items() if count and name not in _FREE_TOOLS))


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise UsageUnreadable(f"the reply's usage says {name} = {value!r}")
    return value
