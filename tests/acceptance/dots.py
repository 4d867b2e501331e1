"""DOT pipelines for tests, and a folder to run them in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.clock import SystemClock

SHIP = """digraph Ship {
  graph [goal="ship it"]
  start [shape=Mdiamond]
  plan [prompt="Plan how to $goal"]
  write [prompt="Write it for $reader"]
  exit [shape=Msquare]
  start -> plan -> write -> exit
}
"""

GATE = """digraph Gate {
  start [shape=Mdiamond]
  write [prompt="Write it"]
  review [shape=hexagon, label="Publish it?"]
  publish [prompt="Publish"]
  exit [shape=Msquare]
  start -> write -> review
  review -> publish [label="[A] Approve"]
  review -> write [label="[R] Revise"]
  publish -> exit
}
"""

TOOLS = """digraph Tools {
  start [shape=Mdiamond]
  hello [shape=parallelogram, tool_command="echo hello; echo to-$reader"]
  check [shape=diamond]
  exit [shape=Msquare]
  bad [shape=parallelogram, tool_command="echo never; exit 3"]
  start -> hello -> check
  check -> exit [condition="context.tool.last_line=to-Ann"]
  check -> bad [condition="context.tool.last_line!=to-Ann"]
  bad -> exit
}
"""

FAN = """digraph Fan {
  graph [goal="five views"]
  start [shape=Mdiamond]
  split [shape=component]
  a [prompt="View A of $goal"]
  a2 [prompt="More of A"]
  b [prompt="View B of $goal"]
  c [prompt="View C of $goal"]
  join [shape=tripleoctagon]
  sum [prompt="Sum up", goal_gate=true, retry_target=start]
  exit [shape=Msquare]
  start -> split
  split -> a -> a2 -> join
  split -> b -> join
  split -> c -> join
  join -> sum -> exit
}
"""


def put(folder: Path, text: str, name: str = "foo.dot") -> str:
    """A DOT file; its path as it would be typed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text())


def wait_for(holds: Callable[[], bool], seconds: float = 300) -> None:
    """Wait until something holds; fail after `seconds`."""
    clock = SystemClock()
    until = clock.monotonic() + seconds
    while not holds():
        assert clock.monotonic() < until, "it did not come to this"
        clock.wait(threading.Event(), 0.02)
