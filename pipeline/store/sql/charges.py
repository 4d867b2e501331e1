"""What calls cost, as rows that can be summed: posted from the records themselves, in their transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pipeline.records.charge import Charge, amount, bound
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled
from pipeline.records.lines import LineDamaged
from pipeline.store.sql.link import Link

#: State, at least, at most (None: unknown).
Cost = tuple[str, Decimal, Decimal | None]

_BEGIN = (
    "INSERT INTO charges (journal, call, run_id, run, at, day, model, label, state, low, high)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?) ON CONFLICT (journal, call) DO NOTHING"
)
# A call that was settled while it was open keeps what was settled; one that is exactly known needs no settling.
_END = "UPDATE charges SET state = ?, low = ?, high = ? WHERE journal = ? AND call = ? AND state = 'open'"
_ANSWERED_BY = "UPDATE charges SET model = ? WHERE journal = ? AND call = ? AND state = 'open'"
_SETTLE = "UPDATE charges SET state = 'exact', low = ?, high = ? WHERE journal = ? AND call = ? AND state <> 'exact'"
_CORRECT = "UPDATE charges SET state = 'exact', low = ?, high = ? WHERE journal = ? AND call = ?"
#: Of a call that has no row; it gets none by its end.
_NONE: Cost = ("exact", Decimal(0), None)


def has_charge(line: bytes) -> bool:
    """Whether a line may say something of what a call costs."""
    return b'"kind":"call_' in line or b'"kind":"charge_settled"' in line


def post(link: Link, journal: int, run: str, lines: Iterable[bytes]) -> None:
    """Enter what these records say of calls. Nothing in them stops the record: what makes no sense is no charge."""
    for line in lines:
        if not has_charge(line):
            continue
        try:
            _post(link, journal, run, decode_line(line))
        except (LineDamaged, ValueError, TypeError, KeyError, AttributeError):
            continue


def again(link: Link, journal: int, run: str, lines: Iterable[bytes], calls: Iterable[int]) -> None:
    """Enter these calls as if they had never been; `lines`: all of the journal."""
    for call in calls:
        link.run("DELETE FROM charges WHERE journal = ? AND call = ?", journal, call)
    post(link, journal, run, lines)


def date_calls(link: Link, journal: int, lines: Iterable[bytes]) -> None:
    """Put charges on the day on which their calls left, as `cost` counts them; once they stood on that of their end."""
    for line in lines:
        if b'"kind":"call_started"' not in line:
            continue
        with contextlib.suppress(LineDamaged, ValueError, TypeError, KeyError, AttributeError):
            record = decode_line(line)
            sql = "UPDATE charges SET at = ?, day = ? WHERE journal = ? AND call = ?"
            link.run(sql, record.at, record.at[:10], journal, record.seq)


def told(lines: Iterable[bytes]) -> dict[int, Cost]:
    """What the records of a whole journal say of its calls, as `post` enters it."""
    calls: dict[int, Cost] = {}
    for line in lines:
        if not has_charge(line):
            continue
        try:
            record = decode_line(line)
            fact = record.fact
            if isinstance(fact, CallStarted) and not fact.origin:
                calls.setdefault(record.seq, ("open", Decimal(0), bound(fact.worst)))
            elif isinstance(fact, CallEnded) and calls.get(fact.call, _NONE)[0] == "open":
                calls[fact.call] = _charge(fact.charge)
            elif isinstance(fact, ChargeSettled) and fact.call in calls:
                if calls[fact.call][0] == "exact" and not fact.corrects:
                    continue
                calls[fact.call] = ("exact", amount(fact.usd), amount(fact.usd))
        except (LineDamaged, ValueError, TypeError, KeyError, AttributeError):
            continue
    return calls


def _post(link: Link, journal: int, run: str, record: Record) -> None:
    fact, at = record.fact, record.at
    if isinstance(fact, CallStarted):
        # Copied from a part, it is a row of that part's already.
        if not fact.origin:
            row = (journal, record.seq, run.partition("/")[0], run, at, at[:10], _text(fact.model), _text(fact.label))
            link.run(_BEGIN, *row, "0", _shown(bound(fact.worst)))
    elif isinstance(fact, CallEnded):
        state, low, high = _charge(fact.charge)
        if other := _model(fact.charge):
            link.run(_ANSWERED_BY, other, journal, fact.call)
        link.run(_END, state, _shown(low), _shown(high), journal, fact.call)
    elif isinstance(fact, ChargeSettled):
        usd = _shown(amount(fact.usd))
        link.run(_CORRECT if fact.corrects else _SETTLE, usd, usd, journal, fact.call)


def _charge(data: Any) -> Cost:
    """State and bounds; a charge that cannot be read is unpriced, never free."""
    try:
        charge = Charge.from_json(data)
    except (LineDamaged, ValueError, TypeError, KeyError, AttributeError):
        return "unpriced", Decimal(0), None
    return charge.state, charge.low, None if charge.state == "unpriced" else charge.high


def _model(data: Any) -> str:
    """The model that answered in the place of the one asked; "" where none did."""
    return _text(str(data.get("model") or "")) if isinstance(data, Mapping) else ""


def _shown(usd: Decimal | None) -> str | None:
    """As decimal text: exact in every database."""
    return None if usd is None else f"{usd:f}"


def _text(value: str) -> str:
    return value.replace("\0", "")
