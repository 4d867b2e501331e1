"""A run's records in a few words each, as `log` and the pages show them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.app.words import count, duration, missing_records, money, money_between, one_line, pairs, when
from pipeline.records import kinds
from pipeline.records.charge import UNPRICED, Charge, bound
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import Fact
from pipeline.records.lines import LineDamaged
from pipeline.records.run import bare, error_text, item_name
from pipeline.records.values import is_reference
from pipeline.store.base import Store

_WIDTH = 200


def records_after(store: Store, run: str, seq: int) -> Iterator[Record]:
    """Yield the records with a higher seq, in order; unreadable ones are left out."""
    for line in store.read(run, after=seq):
        try:
            yield decode_line(line)
        except LineDamaged:
            continue


def kind_of(fact: Fact) -> str:
    """Return the word of a record's kind."""
    return fact.name if isinstance(fact, kinds.UnknownFact) else fact.kind


def line_of(record: Record) -> str:
    """Return a record as one line of `log`."""
    return f"{record.seq:>6}  {when(record.at)}  {kind_of(record.fact):<15}  {details(record.fact)}".rstrip()


def record_json(record: Record) -> dict[str, Any]:
    """Return the record as recorded: seq, at, owner, kind and the fact's fields."""
    fact = record.fact
    body = {"kind": fact.kind, **_fields(fact)}
    if isinstance(fact, kinds.UnknownFact):
        body = {"kind": fact.name, **fact.data}
    return {"seq": record.seq, "at": record.at, "owner": record.owner, **body}


def details(fact: Fact) -> str:
    """Return the fact in a few words; a kind without words of its own shows its fields."""
    words: Callable[[Any], str] | None = _WORDS.get(type(fact))
    return one_line(words(fact) if words else pairs(_fields(fact)), _WIDTH)


def _fields(fact: Fact) -> dict[str, Any]:
    return {name: _plain(getattr(fact, name)) for name in fact.__struct_fields__}


def _plain(value: Any) -> Any:
    """Return a field's value; JSON text as what it holds."""
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value.decode("ascii", "replace")


def _message(error: Mapping[str, Any] | None) -> str:
    return "" if error is None else f"{error.get('type', '')}: {error_text(error)}".strip(": ")


def _again(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _item(fact: Any) -> str:
    return item_name(fact.path, fact.task)


def _process(fact: Any) -> str:
    return f"by process {fact.host.get('pid', '?')} on {fact.host.get('host', '?')}"


def _call_started(fact: kinds.CallStarted) -> str:
    more = (f", try {fact.k}" if fact.k > 1 else "") + (", in a batch" if fact.batch else "")
    return f"{_item(fact)}: {fact.label}, {fact.model}, at most {money(bound(fact.worst))}{more}"


def _call_ended(fact: kinds.CallEnded) -> str:
    charge = Charge.from_json(fact.charge)
    cost = "not priced" if charge.state == UNPRICED else money_between(charge.low, charge.high)
    how = f"failed, {_message(fact.error)}" if fact.error else (fact.stop_reason or "cut off")
    return f"call {fact.call}: {how}, {cost}, {count(sum(charge.tokens.values()), 'token')}"


def _step_completed(fact: kinds.StepCompleted) -> str:
    made: Any = fact.outputs
    if isinstance(made, Mapping):
        made = f"{made.get('bytes', 0):,} bytes" if is_reference(made) else pairs(made)
    return f"{bare(fact.path)}: {made} in {duration(fact.seconds)}"


def _invalidated(fact: kinds.Invalidated) -> str:
    note = f" ({fact.note})" if fact.note and fact.tasks else ""
    return f"{fact.reason}: {', '.join([*map(bare, fact.paths), *(item_name(*task) for task in fact.tasks)])}{note}"


def _document_kept(fact: kinds.DocumentKept) -> str:
    found = _plain(fact.content)
    names = ("type", "id", "layer_index") if isinstance(found, Mapping) else ()
    return f"{fact.source}: {pairs({name: found[name] for name in names if name in found})}"


def _run_ended(fact: kinds.RunEnded) -> str:
    # What was asked for has no class worth naming.
    text = fact.error.get("message", "") if fact.error and fact.detail == "stopped_as_asked" else _message(fact.error)
    return (fact.detail or fact.status).replace("_", " ") + (f": {text}" if text else "")


_WORDS: Mapping[type[Fact], Callable[[Any], str]] = {
    kinds.RunStarted: lambda fact: f"{fact.pipeline}: {pairs(fact.params)}",
    kinds.RunResumed: lambda fact: _process(fact) + (f"; changed: {pairs(fact.identity)}" if fact.identity else ""),
    kinds.StepStarted: lambda fact: f"{bare(fact.path)}{_again(fact.attempt)}",
    kinds.StepCompleted: _step_completed,
    kinds.StepFailed: lambda fact: f"{bare(fact.path)}{_again(fact.attempt)}: {_message(fact.error)}",
    kinds.TaskStarted: lambda fact: f"{_item(fact)} ({fact.effect})",
    kinds.TaskSubmitted: lambda fact: (
        _item(fact) + (f" again, {fact.part}" if fact.part else "")
        + ("" if fact.usd is None else f", at most {money(fact.usd)}")
    ),
    kinds.TaskTaken: lambda fact: f"{_item(fact)} {_process(fact)}",
    kinds.FleetTold: lambda fact: f"no call before {fact.until}" if fact.until else "start nothing more",
    kinds.TaskCompleted: lambda fact: f"{_item(fact)}{_again(fact.attempt)}",
    kinds.TaskFailed: lambda fact: f"{_item(fact)}{_again(fact.attempt)}: {_message(fact.error)}",
    kinds.CallStarted: _call_started,
    kinds.CallEnded: _call_ended,
    kinds.BatchIntended: lambda fact: f"{count(fact.count, 'request')} to be submitted",
    kinds.BatchSubmitted: lambda fact: f"{fact.batch}, due by {fact.expires_at}",
    kinds.BatchAbandoned: lambda fact: (
        f"{fact.batch or 'a batch'} abandoned: {count(fact.requests, 'request')} resubmitted, possibly billed twice"
    ),
    kinds.BatchCancelled: lambda fact: f"{fact.batch}: asked the provider to cancel unanswered requests",
    kinds.DayReserved: lambda fact: f"{money(bound(fact.usd))} of {fact.day}",
    kinds.DecisionAsked: lambda fact: f"{bare(fact.path)}: {fact.shown.get('text', '')}",
    kinds.Decision: lambda fact: f"{_item(fact)}: {fact.choice}" + (f", by {fact.by}" if fact.by else ""),
    kinds.Invalidated: _invalidated,
    kinds.ChargeSettled: lambda fact: f"call {fact.call} cost {money(fact.usd)}",
    kinds.Gap: lambda fact: missing_records(fact.first, fact.last, fact.reason),
    kinds.RunEnded: _run_ended,
    kinds.DocumentKept: _document_kept,
    kinds.Snapshot: lambda fact: f"{fact.source}: {fact.document.get('status', '')}",
}  # fmt: skip
