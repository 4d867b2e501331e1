"""Write amounts, times, sizes and texts for people: the words that commands and pages share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.records.run import Spend

_HEX = frozenset("0123456789abcdef")
#: Characters of a value that are shown.
VALUE_WIDTH = 60


def money(usd: Any) -> str:
    """Return dollars as $1.85, "unknown" for None; nothing that was paid reads as nothing."""
    from decimal import Decimal

    from pipeline.records.charge import dollars

    return "unknown" if usd is None else dollars(Decimal(str(usd)))


def money_between(low: Any, high: Any) -> str:
    """Return what was spent, both ends where they differ; `high` None: no upper bound is known."""
    from decimal import Decimal

    if high is None:
        return f"at least {money(low)}, no upper bound known"
    return money(low) if Decimal(str(high)) == Decimal(str(low)) else f"{money(low)} to at most {money(high)}"


def with_unpriced(text: str, unpriced: int) -> str:
    """Return an amount with the number of calls whose price is not known, so that it does not read as all."""
    return f"{text} + {unpriced:,} unpriced" if unpriced else text


def spent_text(spend: Spend) -> str:
    """Return a sum of charges: both bounds, and how many calls have no price."""
    low = spend.usd + spend.low
    high = None if spend.unbounded else max(low, spend.usd + spend.high)
    return with_unpriced(money_between(low, high), spend.unpriced)


def duration(seconds: float | None) -> str:
    """Return seconds for people: 3 s, 4 min 47 s, 1 h 12 min."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def when(moment: str | datetime | None) -> str:
    """Return a recorded time as `2026-01-09 14:30:22` (UTC)."""
    if not moment:
        return "-"
    text = moment if isinstance(moment, str) else moment.isoformat()
    return text[:19].replace("T", " ")


def count(number: int, noun: str) -> str:
    """Return `1 lesson`, `2 lessons`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def missing_records(first: int, last: int, reason: str) -> str:
    """Return which records are missing; where none is, only why a gap was recorded."""
    if last < first:
        return reason
    return f"{f'record {first} is' if first == last else f'records {first} to {last} are'} missing: {reason}"


def size(length: int) -> str:
    """Return a number of bytes for people: 812 bytes, 96 KB, 1.4 MB."""
    if length < 1000:
        return count(length, "byte")
    return f"{length / 1000:,.0f} KB" if length < 1_000_000 else f"{length / 1_000_000:,.1f} MB"


def short_hash(value: Any) -> str:
    """Return a text as it is, any other value as JSON; a content hash by its beginning."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, default=plain, ensure_ascii=False)
    return text[:12] + "…" if len(text) == 64 and set(text) <= _HEX else text


def one_line(text: object, limit: int = 500) -> str:
    """Return a text on one line, cut with an ellipsis."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def pairs(data: Mapping[str, Any]) -> str:
    """Return `course_id course_c84775, outcomes_created 42`."""
    return ", ".join(f"{name} {short_hash(value)}" for name, value in data.items())


def plain(value: Any) -> Any:
    """Return what JSON has no word for: money as a number, times as text."""
    from datetime import datetime
    from decimal import Decimal

    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)


def brief(value: Any, width: int = VALUE_WIDTH) -> str:
    """Return a value on one line, cut; a long one that was not read by its size."""
    import json

    from pipeline.records.values import is_reference

    if is_reference(value):
        return f"({value['bytes']:,} bytes)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, width) or '""'


def arrow(before: Any, after: Any, width: int = VALUE_WIDTH) -> str:
    """Return `old → new`; what was not there before (Ellipsis) is left out."""
    return brief(after, width) if before is ... else f"{brief(before, width)} → {brief(after, width)}"
