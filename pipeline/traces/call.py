"""What the span of a paid call says: its row of the ledger; its texts only where they were asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.cost.ledger import LedgerRow
from pipeline.cost.usage import WEB_SEARCH
from pipeline.errors import CheckpointCorrupt
from pipeline.records.charge import EXACT, INPUT_KINDS
from pipeline.records.codec import Record
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.money import OPEN
from pipeline.records.values import resolve_value
from pipeline.traces.names import CHAT, PROVIDER_NAMES, Value

#: What a call's request and reply tell beside its row: by our words.
Told = Callable[[Record | None, CallEnded | None], Mapping[str, Value | None]]


def nothing_told(start: Record | None, end: CallEnded | None) -> Mapping[str, Value | None]:
    """Return nothing: no text is read."""
    return {}


def told_by(get_blob: Callable[[str], bytes], *, content: bool) -> Told:
    """Return what reads a call's request and reply.

    Args:
        get_blob: Reads a blob of the run by its hash; raises CheckpointCorrupt where it is damaged.
        content: Tell their texts, too; else only what the reply's usage says beyond the ledger.
    """

    def told(start: Record | None, end: CallEnded | None) -> Mapping[str, Value | None]:
        answer = None if end is None else end.reply
        reply = {} if answer is None else _document(lambda: resolve_value(json.loads(answer), get_blob))
        values: dict[str, Value | None] = {"reasoning": _reasoning(reply.get("usage"))}
        if content:
            fact = None if start is None else start.fact
            request = fact.request if isinstance(fact, CallStarted) else ""
            values |= _texts(_document(lambda: json.loads(get_blob(request))) if request else {}, reply)
        return values

    return told


def _texts(asked: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Value | None]:
    """Return prompts and reply as the convention's JSON."""
    turns = [{"role": turn["role"], "parts": [_part(turn["text"])]} for turn in asked.get("messages") or ()]
    said = [{"role": "assistant", "parts": [_part(reply["text"])]}] if reply.get("text") else []
    return {
        "system": _json([_part(part["text"]) for part in asked.get("system") or ()]),
        "messages": _json(turns),
        "answer": _json(said),
    }


def _reasoning(usage: Any) -> int | None:
    """Return the output tokens that a provider counts as reasoning; None: it does not say."""
    details = usage.get("output_tokens_details") if isinstance(usage, Mapping) else None
    count = details.get("thinking_tokens") if isinstance(details, Mapping) else None
    return count if isinstance(count, int) else None


def call_values(row: LedgerRow, start: CallStarted | None, told: Mapping[str, Value | None]) -> dict[str, Value | None]:
    """Return what a call's span says, by our words.

    Args:
        start: How it began; None: that record was lost.
    """
    asked = (start.model if start is not None else "") or row.model or None
    return {
        "operation": CHAT,
        "provider": PROVIDER_NAMES.get(row.provider, row.provider),
        "asked_model": asked,
        "model": row.model if row.outcome != OPEN and row.model else None,
        "stop_reasons": [row.stop_reason] if row.stop_reason else None,
        **usage_of(row),
        **_cost(row),
        "step": row.step or None,
        "item": row.item or None,
        "attempt": row.attempt,
        "label": row.label or None,
        "seq": row.seq,
        "try": row.k,
        "call_outcome": row.cause or row.outcome,
        "tier": row.tier,
        "request_id": row.request_id or None,
        **told,
    }


def usage_of(row: LedgerRow) -> dict[str, Value | None]:
    """Return a call's tokens by our words: input holds what was cached too. What is not known is None."""
    tokens = row.tokens
    if not tokens:
        return {}
    return {
        "input": sum(tokens.get(kind, 0) for kind in INPUT_KINDS),
        "output": tokens.get("output", 0),
        "cache_read": tokens.get("cache_read", 0),
        "cache_write": tokens.get("cache_write_5m", 0) + tokens.get("cache_write_1h", 0),
        "searches": tokens.get(WEB_SEARCH) or None,
    }


def _cost(row: LedgerRow) -> dict[str, Value | None]:
    """Return what it cost where that is known, else the bounds, under names of our own."""
    if row.state == EXACT:
        return {"usd": float(row.low), "currency": "USD", "cost_source": "local", "cost_state": row.state}
    high = None if row.high is None else float(row.high)
    return {"cost_state": row.state, "usd_low": float(row.low), "usd_high": high}


def _document(read: Callable[[], Any]) -> Mapping[str, Any]:
    """Return a recorded document; {} where it is damaged."""
    try:
        found = read()
    except (CheckpointCorrupt, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _part(text: Any) -> dict[str, str]:
    return {"type": "text", "content": str(text)}


def _json(parts: list[Any]) -> str | None:
    return json.dumps(parts, ensure_ascii=False) if parts else None
