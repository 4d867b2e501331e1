"""A run as it stood at one point: steps, context and cost."""

from __future__ import annotations

from typing import Any

from pipeline.cli.briefly import brief
from pipeline.cli.status import cost_lines, step_rows, steps_table
from pipeline.cli.summary import UNKNOWN_SPEND, thread_line
from pipeline.cli.text import heading, say, say_json, when
from pipeline.records.run import RunState
from pipeline.store.base import Store
from pipeline.travel.values import Reader


def show_moment(place: Store, state: RunState, *, as_json: bool) -> None:
    """Print the run as its state says."""
    steps = step_rows(place, state)
    if as_json:
        say_json(_json(Reader(place, state.run_id), state, steps))
        return
    say(heading(f"RUN {state.run_id} at {state.seq}", f"{state.pipeline}, {when(state.updated_at)} UTC"))
    say(f"Status:  {(state.detail or state.status).replace('_', ' ')}")
    if state.parent:
        say(f"Parent:  run {state.parent.get('run')} at {state.parent.get('seq')}")
    say()
    if thread := thread_line(state):
        say(f"{thread}\n{UNKNOWN_SPEND}")
        return
    say(steps_table(steps))
    if state.context:
        say("\nContext:")
        for key, value in state.context.items():
            say(f"  {key}: {brief(value, 100)}")
    say()
    for line in cost_lines(state.total, state.reported):
        say(line)


def _json(reader: Reader, state: RunState, steps: list[dict[str, Any]]) -> dict[str, Any]:
    total = state.total
    return {
        "run_id": state.run_id,
        "seq": state.seq,
        "at": state.updated_at,
        "pipeline": state.pipeline,
        "params": dict(state.params),
        "settings": dict(state.identity),
        "parent": state.parent,
        "status": state.status,
        "status_detail": state.detail,
        "steps": steps,
        "context": {key: reader.whole(value) for key, value in state.context.items()},
        "cost_usd": total.usd + state.lost.low,
        "possibly_usd": None if total.unbounded else total.high,
        "tokens": dict(total.tokens),
        "calls": total.calls,
    }
