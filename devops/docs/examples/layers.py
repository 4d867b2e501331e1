"""A DAG of tools that fails in its third layer and is resumed, as another process would resume it.

PYTHONPATH=. .venv/bin/python devops/docs/examples/layers.py
"""

from __future__ import annotations

import tempfile
from typing import Any

from pipeline import ControlledExecutor, LayerCheckpoints, TaskResult, open_store

DAG = {
    "tasks": [
        {"id": "tides", "tool": "read", "arguments": {"town": "Oban"}},
        {"id": "ferries", "tool": "read", "arguments": {"town": "Mallaig"}},
        {"id": "plan", "tool": "combine", "depends_on": ["tides", "ferries"]},
        {"id": "letter", "tool": "write", "arguments": {"to": "Kirsty"}, "depends_on": ["plan"]},
    ]
}
ran: list[str] = []


def read(call: Any) -> dict[str, str]:
    """A tool gets one call: a mapping of its arguments that knows more."""
    ran.append(call.id)
    return {"about": f"{call.id} of {call['town']}"}


def combine(call: Any) -> TaskResult:
    """What a tool has to say beside its result goes into the state."""
    ran.append(call.id)
    facts = [call.inputs[name]["about"] for name in ("tides", "ferries")]
    return TaskResult(facts, messages=["two sources agree"], context={"sources": len(facts)})


def write(call: Any) -> str:
    """Fail until a pen is passed in."""
    ran.append(call.id)
    if "pen" not in call.services:
        raise RuntimeError("no pen")
    return f"Dear {call['to']}, {' and '.join(call.inputs['plan'])}."


TOOLS = {"read": read, "combine": combine, "write": write}


def main() -> None:
    """Run, look, go on."""
    store = open_store(f"files:{tempfile.mkdtemp()}")
    first = ControlledExecutor(DAG, TOOLS, store=store).execute()
    print(first.status, dict(first.failed), f"{first.layer_index} of {first.layers} layers done")

    checkpoints = LayerCheckpoints(store)
    for row in reversed(checkpoints.listed(first.run_id)):
        print("checkpoint: layers done", row["layer_index"])
    newest = checkpoints.latest(first.run_id)
    assert newest is not None
    print("state:", newest.state.context)

    ran.clear()
    # Everything that is needed is in the store, but for the code and what is lent to it.
    executor = ControlledExecutor(tools=TOOLS, store=store, services={"pen": "blue"})
    again = executor.resume_from_checkpoint(newest.id)
    print(again.status, ran, again.results["letter"])


if __name__ == "__main__":
    main()
