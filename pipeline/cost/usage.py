"""Raw usage → billed tokens by kind: disjoint buckets, nothing counted twice. Knows no prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

#: Billed beside tokens, per request of the tool.
WEB_SEARCH = "web_search"
#: The place of inference is a region's own endpoint.
REGIONAL = "regional"
#: Tool requests that cost nothing beyond their tokens.
_FREE_TOOLS = frozenset({"web_fetch_requests"})

#: No single reply bills more of anything.
_MOST = 10**12


class UsageUnreadable(ValueError):
    """The usage object does not say how many tokens were billed."""


@dataclass(frozen=True, slots=True)
class BilledUsage:
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
    #: Where the figures contradict each other, the reading of them that costs least; this one costs most.
    least: BilledUsage | None = None


#: Key of a usage object that was put together from several: figures that a later one left out while it changed others.
LEFT_OUT = "left_out_later"
_KINDS_OF = {
    "input_tokens": ("input",),
    "cache_creation_input_tokens": ("cache_write_5m", "cache_write_1h"),
    "cache_read_input_tokens": ("cache_read",),
}


def billed(usage: Mapping[str, Any], tier: str | None = None) -> BilledUsage:
    """Read a raw usage object.

    `input_tokens` excludes the cache. The breakdown of cache writes by lifetime replaces their total where it adds up
    to it; where it does not, any of them may have been written for five minutes or for an hour.

    Args:
        tier: The tier where it is known otherwise (a batch); None: as the usage says.

    Raises:
        UsageUnreadable: Input or output tokens are missing, the prompt has none, or a figure is not a whole number that
            it can be.
    """
    if usage.get("input_tokens") is None or usage.get("output_tokens") is None:
        raise UsageUnreadable("the reply's usage has no input_tokens or output_tokens")
    short, long, unsure = _writes(usage)
    counts = {
        "input": _count(usage, "input_tokens"),
        "cache_write_5m": short,
        "cache_write_1h": long + unsure,
        "cache_read": _count(usage, "cache_read_input_tokens"),
        "output": _count(usage, "output_tokens"),
    }
    if not _prompt(counts):
        raise UsageUnreadable("the reply's usage counts no token of the prompt")
    searches, unknown = _tools(usage.get("server_tool_use"))
    counts[WEB_SEARCH] = searches
    # An endpoint of a region is noted by the adapter (llm.wire.Heard): the usage itself does not tell.
    geo = REGIONAL if usage.get("endpoint") == REGIONAL else str(usage.get("inference_geo") or "").lower()
    seen = BilledUsage(
        tokens=_billed_only(counts),
        prompt=_prompt(counts),
        tier=tier or str(usage.get("service_tier") or "standard"),
        fast=usage.get("speed") == "fast",
        geo="" if geo in ("global", "not_available") else geo,
        unknown=unknown,
    )
    least = _least(counts, unsure, usage.get(LEFT_OUT))
    return (
        seen
        if least == counts
        else replace(seen, least=replace(seen, tokens=_billed_only(least), prompt=_prompt(least)))
    )


def _least(counts: Mapping[str, int], unsure: int, left_out: Any) -> dict[str, int]:
    """Return the cheapest reading: writes of unknown lifetime are short, what was left out later is not billed."""
    least = {**counts, "cache_write_5m": counts["cache_write_5m"] + unsure}
    least["cache_write_1h"] -= unsure
    for name in left_out if isinstance(left_out, list) else ():
        least.update(dict.fromkeys(_KINDS_OF.get(name, ()), 0))
    return least


def _billed_only(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if count or kind in ("input", "output")}


def _prompt(counts: Mapping[str, int]) -> int:
    return sum(count for kind, count in counts.items() if kind not in ("output", WEB_SEARCH))


def _writes(usage: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the tokens written to the cache for five minutes, for an hour, and for one of the two."""
    total = usage.get("cache_creation_input_tokens")
    split = usage.get("cache_creation")
    if not isinstance(split, Mapping):
        return _count(usage, "cache_creation_input_tokens"), 0, 0
    long, short = (_count(split, f"ephemeral_{life}_input_tokens") for life in ("1h", "5m"))
    if total is None or _count(usage, "cache_creation_input_tokens") == short + long:
        return short, long, 0
    return 0, 0, _count(usage, "cache_creation_input_tokens")


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
