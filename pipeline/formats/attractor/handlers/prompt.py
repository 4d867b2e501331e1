"""What a node's texts become: known names are filled in; and how much of what came before a model is told.

All of it follows from the records of the visits that led here, so that a later process asks the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.attributes import FIDELITIES
from pipeline.dot.model import DotGraph
from pipeline.dot.names import NAME
from pipeline.dot.values import as_text
from pipeline.formats.attractor.children import CHILD_OF, GOAL, THREAD
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import value_text
from pipeline.llm.base import Message
from pipeline.records.run import StepRun, bare
from pipeline.records.statuses import FAILED

FULL, TRUNCATE, COMPACT = "full", "truncate", "compact"
#: Most characters of the text that tells what came before.
SIZES: Mapping[str, int] = {
    TRUNCATE: 600, COMPACT: 4_000, "summary:low": 2_400, "summary:medium": 6_000, "summary:high": 12_000,
}  # fmt: skip
#: So many visits are told of, and so long is the value of a context key.
_VISITS, _VALUE = 40, 200
#: Context keys that are not told: the program's own, and what the replies say themselves.
_UNTOLD = (
    "internal.", "graph.", "parallel.", "stack.", "current_node", "last_", "tool_stdout", "tool.", "outcome",
    "preferred_label", "_",
)  # fmt: skip


# Names


def name_value(visit: Visit, name: str) -> str | None:
    """Return the text that `$name` means: the goal, a context key, a parameter, the graph's attribute, a reply.

    Returns:
        None if the name is not known.
    """
    if name == "goal":
        return goal_of(visit)
    ctx = visit.ctx
    for table in (ctx.context, ctx.params):
        if name in table:
            return value_text(table[name], compact=False)
    value = visit.graph.attributes.get(name.removeprefix("graph."))
    if value is not None:
        return as_text(value)
    node, _, key = name.rpartition(".")
    if key not in ("response", "output", "prompt") or node not in visit.graph.nodes:
        return None
    runs = [run for run in ctx.place.ancestors() if run.node == node and run.ended_seq]
    found = _outputs(visit, max(runs, key=lambda run: run.visit)).get(key) if runs else None
    return None if found is None else value_text(found, compact=False)


def goal_of(visit: Visit) -> str:
    """Return the goal a node works for: its child pipeline's own, else the graph's; known names are filled in."""
    goal = visit.node.text(GOAL) or visit.graph.goal
    return expand(goal, lambda name: None if name == "goal" else name_value(visit, name))


def filled(visit: Visit, text: str) -> str:
    """Return a text with the names that a visit knows filled in."""
    return expand(text, lambda name: name_value(visit, name))


def expand(text: str, known: Callable[[str], str | None]) -> str:
    """Return the text with known names filled in; what is filled in is not looked at again.

    Of a name with parts the longest beginning that is known counts: "$goal.txt" is the goal and ".txt".
    """

    def value_of(found: re.Match[str]) -> str:
        if braced := found[1]:
            value = known(braced)
            return found[0] if value is None else value
        name, rest = found[2], ""
        while (value := known(name)) is None:
            name, dot, last = name.rpartition(".")
            if not dot:
                return found[0]
            rest = f".{last}{rest}"
        return value + rest

    return NAME.sub(value_of, text) if "$" in text else text


# What came before


@dataclass(frozen=True, slots=True)
class History:
    """What a model is told before a node's prompt."""

    #: full, truncate, compact, summary:low, summary:medium or summary:high.
    mode: str
    #: The conversation that the visit belongs to.
    thread: str
    #: A text for the system prompt; "": nothing came before.
    preamble: str = ""
    #: The turns of the conversation so far.
    turns: Sequence[Message] = ()


def mode_of(visit: Visit) -> str:
    """Return the configured mode: of the edge taken, else of the node, else of the graph, else compact."""
    said = [edge.text("fidelity") for edge in _edges(visit)]
    said += [visit.node.text("fidelity"), visit.node.text("context_fidelity")]
    return _first_mode(said) or default_mode(visit.graph)


def default_mode(graph: DotGraph) -> str:
    """Return the mode of nodes that name none: of the graph, else compact."""
    return _first_mode(map(graph.text, ("default_fidelity", "context_fidelity_default"))) or COMPACT


def _first_mode(said: Iterable[str]) -> str:
    return next((word.strip() for word in said if word.strip() in FIDELITIES), "")


def thread_of(visit: Visit, before: Sequence[StepRun]) -> str:
    """Return the thread: the node's, else the edge's, the graph's, the subgraph's, else that of the node before.

    Args:
        before: The visits that led here, nearest first.
    """
    node, graph = visit.node, visit.graph
    said = [node.text("thread_id"), *(edge.text("thread_id") for edge in _edges(visit)), node.text(THREAD)]
    if not node.text(CHILD_OF):
        said += map(graph.text, ("default_thread_id", "context_thread_default", "thread_id"))
    if found := next((word.strip() for word in (*said, *node.groups[:1]) if word.strip()), ""):
        return found
    threads = (_outputs(visit, run).get("thread") for run in before)
    return str(next((thread for thread in threads if thread), node.id))


def history(visit: Visit, mode: str) -> History:
    """Return what the model is told before the prompt, in a mode."""
    near = visit.ctx.place.nearest(_VISITS)
    thread = thread_of(visit, near)
    if mode == FULL:
        return History(mode, thread, turns=list(_turns(visit, thread)))
    return History(mode, thread, _preamble(visit, SIZES[mode], near, short=mode == TRUNCATE))


def _preamble(visit: Visit, size: int, near: Sequence[StepRun], *, short: bool) -> str:
    """Return what came before as a text of bounded size; "" if nothing did.

    Args:
        near: The visits that led here, nearest first.
        short: Tell the goal only.
    """
    goal = goal_of(visit)
    lines = [f"The goal: {_cut(goal, size // 2)}"] if goal else []
    worked = [run for run in near if visit.graph.kind(run.node) not in kinds.IDLE]
    if short or not worked:
        return "\n".join(lines)
    lines += ["What was done before this step, the newest first:", *_fitting(map(_line, worked), size // 4, "- …")]
    context = visit.ctx.context
    texts = ((key, _cut(value_text(context[key], compact=False), _VALUE))
             for key in sorted(context) if not key.startswith(_UNTOLD))  # fmt: skip
    if values := list(_fitting((f"- {key}: {text}" for key, text in texts if text), size // 4)):
        lines += ["What is known:", *values]
    size -= len("\n".join(lines))
    # Beginnings of what the visits gave: the newest gets half of the room, the next half of the rest.
    for run in worked:
        outputs = _outputs(visit, run)
        text = str(outputs.get("response") or outputs.get("output") or "").strip()
        if not text:
            continue
        title = f"{bare(run.path)} gave:"
        room = (size - len(title) - 2) // 2 if size > 400 else size - len(title) - 2
        if room < 40:
            break
        lines.append(f"{title}\n{_cut(text, room)}")
        size -= len(lines[-1]) + 1
    return "\n".join(lines)


def _line(run: StepRun) -> str:
    """Return `- plan: success` for a visit."""
    failed = run.status == FAILED and run.error
    why = f" ({_cut(str(run.error.get('message', '')), _VALUE)})" if failed and run.error else ""
    return f"- {bare(run.path)}: {run.outcome or run.status}{why}"


def _fitting(lines: Iterable[str], size: int, more: str = "") -> Iterator[str]:
    """Yield as many lines as fit into so many characters, then `more` if there were others."""
    for line in lines:
        size -= len(line) + 1
        if size < 0:
            yield from [more] if more else []
            return
        yield line


def _turns(visit: Visit, thread: str) -> Iterator[Message]:
    """Yield prompt and reply of every visit of the thread that led here, oldest first."""
    for run in visit.ctx.place.ancestors():
        if run.status == FAILED:
            continue
        outputs = _outputs(visit, run)
        prompt, response = outputs.get("prompt"), outputs.get("response")
        said = isinstance(prompt, str) and isinstance(response, str) and prompt.strip() and response.strip()
        if said and outputs.get("thread") == thread:
            yield Message("user", str(prompt))
            yield Message("assistant", str(response))


def _edges(visit: Visit) -> Iterator[Any]:
    """Yield the drawn edges by which the visit was reached."""
    edges = (visit.graph.edge(edge_id) for edge_id, _ in visit.ctx.place.consumed)
    return (edge for edge in edges if edge is not None)


def _outputs(visit: Visit, run: StepRun) -> Mapping[str, Any]:
    outputs = visit.ctx.place.recorded(run.outputs)
    return outputs if isinstance(outputs, Mapping) else {}


def _cut(text: str, size: int) -> str:
    text = " ".join(text.split()) if size <= _VALUE else text.strip()
    return text if len(text) <= size else f"{text[: max(size - 1, 0)]}…"
