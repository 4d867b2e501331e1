"""What a record says, in one line for people or one object for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.cli.text import count, duration, missing_records, money, money_between, one_line, short_hash
from pipeline.records import kinds
from pipeline.records.charge import UNPRICED, Charge, bound
from pipeline.records.codec import Record
from pipeline.records.kinds import Fact
from pipeline.records.run import bare
from pipeline.records.values import is_reference

_WIDTH = 200


def details(fact: Fact) -> str:
    """The fact in a few words; kinds nobody described show their fields."""
    tell: Callable[[Any], str] | None = _TELLERS.get(type(fact))
    return one_line(tell(fact) if tell else pairs(_fields(fact)), _WIDTH)


def record_json(record: Record) -> dict[str, Any]:
    """The record as recorded: seq, at, owner, kind and the fact's fields."""
    fact = record.fact
    body = {"kind": fact.kind, **_fields(fact)}
    if isinstance(fact, kinds.UnknownFact):
        body = {"kind": fact.name, **fact.data}
    return {"seq": record.seq, "at": record.at, "owner": record.owner, **body}


def pairs(data: Mapping[str, Any]) -> str:
    """`course_id course_c84775, outcomes_created 42`."""
    return ", ".join(f"{name} {short_hash(value)}" for name, value in data.items())


def item_name(path: str, task: str | None) -> str:
    """`STEP[/ITEM]` as `show` takes it: "lessons/7"."""
    step = bare(path)
    node = step.rpartition("/")[2].partition("#")[0]
    return f"{step}/{task.removeprefix(f'{node}/')}" if task else step


def _fields(fact: Fact) -> dict[str, Any]:
    return {name: _plain(getattr(fact, name)) for name in fact.__struct_fields__}


def _plain(value: Any) -> Any:
    """A field's value; JSON text as what it says."""
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value.decode("ascii", "replace")


def _outputs(value: Any) -> str:
    if is_reference(value):
        return f"{value.get('bytes', 0):,} bytes"
    return pairs(value) if isinstance(value, Mapping) else str(value)


def _message(error: Mapping[str, Any] | None) -> str:
    return "" if error is None else f"{error.get('type', '')}: {error.get('message', '')}".strip(": ")


def _again(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _run_started(fact: kinds.RunStarted) -> str:
    return f"{fact.pipeline}: {pairs(fact.params)}"


def _run_resumed(fact: kinds.RunResumed) -> str:
    changed = f"; changed: {pairs(fact.identity)}" if fact.identity else ""
    return f"by process {fact.host.get('pid', '?')} on {fact.host.get('host', '?')}{changed}"


def _call_started(fact: kinds.CallStarted) -> str:
    again = f", try {fact.k}" if fact.k > 1 else ""
    batch = ", in a batch" if fact.batch else ""
    worst = money(bound(fact.worst))
    return f"{item_name(fact.path, fact.task)}: {fact.label}, {fact.model}, at most {worst}{again}{batch}"


def _call_ended(fact: kinds.CallEnded) -> str:
    charge = Charge.from_json(fact.charge)
    cost = "not priced" if charge.state == UNPRICED else money_between(charge.low, charge.high)
    how = f"failed, {_message(fact.error)}" if fact.error else (fact.stop_reason or "cut off")
    return f"call {fact.call}: {how}, {cost}, {count(sum(charge.tokens.values()), 'token')}"


def _task_completed(fact: kinds.TaskCompleted) -> str:
    return f"{item_name(fact.path, fact.task)}{_again(fact.attempt)}"


def _task_submitted(fact: kinds.TaskSubmitted) -> str:
    again = f" again, {fact.part}" if fact.part else ""
    return f"{item_name(fact.path, fact.task)}{again}" + ("" if fact.usd is None else f", at most {money(fact.usd)}")


def _task_failed(fact: kinds.TaskFailed) -> str:
    return f"{item_name(fact.path, fact.task)}{_again(fact.attempt)}: {_message(fact.error)}"


def _step_completed(fact: kinds.StepCompleted) -> str:
    return f"{bare(fact.path)}: {_outputs(fact.outputs)} in {duration(fact.seconds)}"


def _invalidated(fact: kinds.Invalidated) -> str:
    note = f" ({fact.note})" if fact.note and fact.tasks else ""
    return f"{fact.reason}: {', '.join([*map(bare, fact.paths), *(item_name(*task) for task in fact.tasks)])}{note}"


def _document_kept(fact: kinds.DocumentKept) -> str:
    found = _plain(fact.content)
    told = ("type", "id", "layer_index") if isinstance(found, Mapping) else ()
    return f"{fact.source}: {pairs({name: found[name] for name in told if name in found})}"


def _run_ended(fact: kinds.RunEnded) -> str:
    # What was asked for has no class worth naming.
    text = fact.error.get("message", "") if fact.error and fact.detail == "stopped_as_asked" else _message(fact.error)
    why = f": {text}" if text else ""
    return (fact.detail or fact.status).replace("_", " ") + why


_TELLERS: Mapping[type[Fact], Callable[[Any], str]] = {
    kinds.RunStarted: _run_started,
    kinds.RunResumed: _run_resumed,
    kinds.StepStarted: lambda fact: f"{bare(fact.path)}{_again(fact.attempt)}",
    kinds.StepCompleted: _step_completed,
    kinds.StepFailed: lambda fact: f"{bare(fact.path)}{_again(fact.attempt)}: {_message(fact.error)}",
    kinds.TaskStarted: lambda fact: f"{item_name(fact.path, fact.task)} ({fact.effect})",
    kinds.TaskSubmitted: _task_submitted,
    kinds.TaskTaken: lambda fact: f"{item_name(fact.path, fact.task)} by process {fact.host.get('pid')} "
    f"on {fact.host.get('host')}",
    kinds.FleetTold: lambda fact: f"no call before {fact.until}" if fact.until else "begin nothing more",
    kinds.TaskCompleted: _task_completed,
    kinds.TaskFailed: _task_failed,
    kinds.CallStarted: _call_started,
    kinds.CallEnded: _call_ended,
    kinds.BatchIntended: lambda fact: f"{count(fact.count, 'request')} to be handed in",
    kinds.BatchSubmitted: lambda fact: f"{fact.batch}, answered by {fact.expires_at}",
    kinds.BatchAbandoned: lambda fact: (
        f"{fact.batch or 'a batch'} given up: {count(fact.requests, 'request')} asked again, possibly spent"
    ),
    kinds.BatchCancelled: lambda fact: f"{fact.batch}: the provider was asked to leave what it had not answered",
    kinds.DayReserved: lambda fact: f"{money(bound(fact.usd))} of {fact.day}",
    kinds.DecisionAsked: lambda fact: f"{bare(fact.path)}: {fact.shown.get('text', '')}",
    kinds.Decision: lambda fact: f"{bare(fact.path)}: {fact.choice}" + (f", by {fact.by}" if fact.by else ""),
    kinds.Invalidated: _invalidated,
    kinds.ChargeSettled: lambda fact: f"call {fact.call} cost {money(fact.usd)}",
    kinds.Gap: lambda fact: missing_records(fact.first, fact.last, fact.reason),
    kinds.RunEnded: _run_ended,
    kinds.DocumentKept: _document_kept,
    kinds.Snapshot: lambda fact: f"{fact.source}: {fact.document.get('status', '')}",
}  # fmt: skip
