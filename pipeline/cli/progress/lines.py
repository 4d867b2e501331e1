"""Events as plain lines, such as `Step 3/4: LESSONS`. Pure: event in, lines out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pipeline.cli.narrate import item_name
from pipeline.cli.progress.tally import Tally
from pipeline.cli.text import count, duration, heading, money, one_line, short_hash, with_unpriced
from pipeline.records.charge import in_full

Data = Mapping[str, Any]


def lines_of(kind: str, data: Data, tally: Tally) -> list[str]:
    """The lines to print for an event, after `tally` has counted it; most events need none."""
    maker = _MAKERS.get(kind)
    return maker(data, tally) if maker else []


def banner(data: Data) -> str:
    """RESUMING PIPELINE, as users of the checkpoint documentation know it."""
    return heading(
        f"RESUMING PIPELINE: {data.get('pipeline', '')}",
        f"Run ID: {data.get('run', '')}",
        *(f"{label}: {data[name]}" for label, name in (("Subject", "subject"), ("Level", "level")) if data.get(name)),
        f"Last completed: {data.get('last_completed') or '-'}",
        f"Resuming from: {data.get('resuming_from') or '-'}",
    )


def outputs_text(outputs: Data) -> str:
    """Outputs on one line: `course_id course_c84775, outcomes_created 42`."""
    return one_line(", ".join(f"{name} {short_hash(value)}" for name, value in outputs.items()), 160)


def _decided(word: str) -> Callable[[Data, Tally], list[str]]:
    def make(data: Data, _: Tally) -> list[str]:
        reason = f"({data['reason']})" if data.get("reason") else ""
        return [" ".join(filter(None, (word, str(data.get("run", "")), reason)))]

    return make


def _resumed(data: Data, _: Tally) -> list[str]:
    return [banner(data), ""]


def spent_so_far(tally: Tally) -> str:
    """Return what the run has spent up to now."""
    return with_unpriced(money(tally.spent), tally.unpriced)


def _plan(data: Data, _: Tally) -> list[str]:
    ceiling, worst = data.get("ceiling_usd"), data.get("worst_usd")
    limit = "none" if ceiling is None else in_full(Decimal(str(ceiling)))
    lines = [f"Model: {data.get('model', '')}"]
    at_worst = money(worst)
    if ceiling is not None and (worst is None or Decimal(str(worst)) > Decimal(str(ceiling))):
        at_worst = f"{limit} (the ceiling)"
    expected = data.get("expected_usd")
    if None not in (expected, ceiling) and Decimal(str(expected)) > Decimal(str(ceiling)):
        at_worst = f"{at_worst}: the run will probably stop there before it is complete, and can be resumed"
        lines.append(f"Expected cost: {money(expected)}, more than {at_worst}")
    else:
        lines.append(f"Expected cost: {money(expected)}, at worst {at_worst}")
    lines.append(f"Ceiling: {limit}{'' if ceiling is None else ' (--max-cost-usd)'}")
    return [*lines, ""]


def _step_started(data: Data, _: Tally) -> list[str]:
    title = f"Step {data.get('index')}/{data.get('total')}: {str(data.get('step', '')).upper()}{_which(data)}"
    return [title, "  ⏳ In progress..."]


def _which(data: Data) -> str:
    """What tells a visit from others of its node, and from nodes beside it: `#2`, the branch of a fan-out."""
    number, branch = str(data.get("path") or "").rpartition("#")[2], data.get("branch")
    visit = f"#{number}" if number.isdecimal() and number != "1" else ""
    return visit + (f" (branch {branch})" if branch and branch != data.get("step") else "")


def _name(data: Data, tally: Tally) -> str:
    """The visit that has ended, where others run beside it."""
    return f"{data.get('step', '')}{_which(data)}: " if tally.at_once else ""


def _step_completed(data: Data, tally: Tally) -> list[str]:
    cost = (
        f", {with_unpriced(money(data['usd']), data.get('unpriced_calls', 0))}" if data.get("usd") is not None else ""
    )
    outputs = outputs_text(data.get("outputs") or {})
    return [f"  ✓ {_name(data, tally)}{duration(data.get('seconds'))}{cost}" + (f": {outputs}" if outputs else "")]


def _step_failed(data: Data, tally: Tally) -> list[str]:
    again = data.get("again")
    more = "" if again is None else f" (tried again in {duration(again)})"
    return [f"  ✗ {_name(data, tally)}{one_line(_message(data.get('error')))}{more}"]


def _map_started(data: Data, tally: Tally) -> list[str]:
    if data.get("total", 0) < 2 or tally.repeated:
        return []
    restored = data.get("restored", 0)
    note = f", {restored:,} made before" if restored else ""
    note += f", {data['failed']:,} failed before" if data.get("failed") else ""
    return [f"  {data.get('name', '')}: {count(data.get('total', 0), 'item')}{note}"]


def _task_completed(data: Data, tally: Tally) -> list[str]:
    if data.get("restored") or data.get("name", tally.map) != tally.map or tally.items < 2:
        return []
    return [f"  {_item(data, tally)} · {tally.done} of {tally.items} · {spent_so_far(tally)}"]


def _task_failed(data: Data, tally: Tally) -> list[str]:
    return [f"  ✗ {_item(data, tally)}: {one_line(_message(data.get('error')), 200)}"]


def _item(data: Data, tally: Tally) -> str:
    """`lessons/7`, `sow/entry/7`: the name that `show` and `redo` take."""
    name, path = str(data.get("name", tally.map)), str(data.get("path") or tally.step)
    return item_name(path, f"{name}/{data.get('key', '')}")


def _waiting(_: Data, tally: Tally) -> list[str]:
    return [f"  waiting: {tally.waiting}"]


def _batch_submitted(data: Data, _: Tally) -> list[str]:
    until = str(data.get("expires_at") or "")[:16].replace("T", " ")
    return [f"  batch {data.get('batch', '')}: {count(data.get('requests', 0), 'request')}, answered by {until} UTC"]


def _batch_ended(data: Data, tally: Tally) -> list[str]:
    return [f"  batch {data.get('batch', '')}: answered · {spent_so_far(tally)}"]


def _decision_asked(data: Data, _: Tally) -> list[str]:
    choices = ", ".join(str(choice) for choice in data.get("choices") or ())
    return [f"  ? {one_line(data.get('text', ''), 300)}" + (f" ({choices})" if choices else "")]


def _decision(data: Data, _: Tally) -> list[str]:
    by = f", by {data['by']}" if data.get("by") else ""
    return [f"  → {one_line(data.get('choice', ''), 200)}{by}"]


def _note(data: Data, _: Tally) -> list[str]:
    return [one_line(data.get("text", ""), 1000)]


def _stopping(data: Data, _: Tally) -> list[str]:
    calls = data.get("calls", 0)
    waits = (
        f"; {count(calls, 'call')} in flight, at most {money(data.get('worst_usd'))}, will be recorded" if calls else ""
    )
    out = f" {data['out']}" if data.get("out") else ""
    return [f"Stopping ({data.get('signal', '')}){waits}.{out} Once more: leave at once."]


def _leaving(data: Data, _: Tally) -> list[str]:
    kept = [f"Kept: what the store had not taken yet, in {data['kept']}"] if data.get("kept") else []
    return [f"Left at once; run {data.get('run', '')} is saved.", *kept, f"Go on: {data.get('command', '')}"]


def _message(error: Any) -> str:
    return str(error.get("message", "")) if isinstance(error, Mapping) else str(error or "")


_MAKERS: Mapping[str, Callable[[Data, Tally], list[str]]] = {
    "run_new": _decided("new"),
    "run_continuing": _decided("continuing"),
    "run_already_completed": _decided("already completed"),
    "run_resumed": _resumed,
    "run_started": lambda data, _: [f"Run {data.get('run', '')}"],
    "stopping": _stopping,
    "leaving": _leaving,
    "plan": _plan,
    "step_started": _step_started,
    "step_completed": _step_completed,
    "step_failed": _step_failed,
    "map_started": _map_started,
    "task_completed": _task_completed,
    "task_failed": _task_failed,
    "waiting": _waiting,
    "batch_submitted": _batch_submitted,
    "batch_ended": _batch_ended,
    "decision_asked": _decision_asked,
    "decision": _decision,
    "note": _note,
    "looking": _note,
}
