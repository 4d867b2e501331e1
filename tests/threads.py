"""Threads of LangGraph for tests: their configuration, and a checkpoint put into one."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from pipeline import LangGraphSaver


def thread(name: str, **more: str) -> Any:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": name, "checkpoint_ns": "", **more}}


def put(saver: LangGraphSaver, name: str, parent: str = "", **values: Any) -> str:
    """Put a checkpoint with these values; its id."""
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": dict.fromkeys(values, "1")}
    config = thread(name, **({"checkpoint_id": parent} if parent else {}))
    made = saver.put(config, checkpoint, {"source": "loop", "step": 0, "parents": {}}, dict.fromkeys(values, "1"))  # type: ignore[arg-type]
    return str(made["configurable"]["checkpoint_id"])
