"""How much of what came before a model is told: the mode of a visit, its thread, and the text or turns that follow.

All of it follows from the records of the visits that led here, so that a later process asks the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.attributes import FIDELITIES
from pipeline.dot.model import DotGraph
from pipeline.formats.attractor.children import CHILD_OF, THREAD
from pipeline.formats.attractor.handlers.expansion import goal_of, text_of
from pipeline.formats.attractor.handlers.registry import Visit
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
_GRAPH_MODE = ("default_fidelity", "context_fidelity_default")
_GRAPH_THREAD = ("default_thread_id", "context_thread_default", "thread_id")


@dataclass(frozen=True, slots=True)
class Told:
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
    """The configured mode: of the edge taken, else of the node, else of the graph, else compact."""
    said = [edge.text("fidelity") for edge in _edges(visit)]
    said += [visit.node.text("fidelity"), visit.node.text("context_fidelity")]
    return _first_mode(said) or default_mode(visit.graph)


def default_mode(graph: DotGraph) -> str:
    """The mode of nodes that name none: of the graph, else compact."""
    return _first_mode(graph.text(name) for name in _GRAPH_MODE) or COMPACT


def _first_mode(said: Iterable[str]) -> str:
    return next((word.strip() for word in said if word.strip() in FIDELITIES), "")


def thread_of(visit: Visit, before: Sequence[StepRun]) -> str:
    """The thread: the node's, else the edge's, else the graph's, else its subgraph's, else that of the node before.

    Args:
        before: The visits that led here, nearest first.
    """
    node, graph = visit.node, visit.graph
    said = [node.text("thread_id"), *(edge.text("thread_id") for edge in _edges(visit)), node.text(THREAD)]
    if not node.text(CHILD_OF):
        said += [graph.text(name) for name in _GRAPH_THREAD]
    said += node.groups[:1]
    if found := next((word.strip() for word in said if word.strip()), ""):
        return found
    for run in before:
        if thread := _outputs(visit, run).get("thread"):
            return str(thread)
    return node.id


def told(visit: Visit, mode: str) -> Told:
    """What the model is told before the prompt, in a mode."""
    near = visit.ctx.nearest(_VISITS)
    thread = thread_of(visit, near)
    if mode == FULL:
        return Told(mode, thread, turns=list(_turns(visit, thread)))
    return Told(mode, thread, preamble(visit, mode, near))


def preamble(visit: Visit, mode: str, near: Sequence[StepRun]) -> str:
    """What came before as a text of bounded size; "" where nothing did.

    Args:
        near: The visits that led here, nearest first.
    """
    size = SIZES[mode]
    goal = goal_of(visit)
    head = [f"The goal: {_cut(goal, size // 2)}"] if goal else []
    worked = [run for run in near if visit.graph.kind(run.node) not in kinds.IDLE]
    if mode == TRUNCATE or not worked:
        return "\n".join(head)
    head += ["What was done before this step, the newest first:", *_lines(visit, worked, size // 4)]
    values = list(_values(visit, size // 4))
    if values:
        head += ["What is known:", *values]
    text = "\n".join(head)
    replies = _replies(visit, worked, size - len(text))
    return "\n".join([text, *replies])


def _lines(visit: Visit, runs: Sequence[StepRun], size: int) -> Iterator[str]:
    """`- plan: success` for each visit, as many as fit."""
    for run in runs:
        line = f"- {bare(run.path)}: {run.outcome or run.status}"
        if run.status == FAILED and run.error:
            line += f" ({_cut(str(run.error.get('message', '')), _VALUE)})"
        size -= len(line) + 1
        if size < 0:
            yield "- …"
            return
        yield line


def _values(visit: Visit, size: int) -> Iterator[str]:
    """`- key: value` for each context key that says something, as many as fit."""
    context = visit.ctx.context
    for key in sorted(context):
        if key.startswith(_UNTOLD):
            continue
        value = _cut(text_of(context[key]), _VALUE)
        if not value:
            continue
        line = f"- {key}: {value}"
        size -= len(line) + 1
        if size < 0:
            return
        yield line


def _replies(visit: Visit, runs: Sequence[StepRun], size: int) -> list[str]:
    """Beginnings of what the visits gave: the newest gets half of the room, the next half of the rest."""
    found = []
    for run in runs:
        outputs = _outputs(visit, run)
        text = str(outputs.get("response") or outputs.get("output") or "").strip()
        if not text:
            continue
        title = f"{bare(run.path)} gave:"
        room = (size - len(title) - 2) // 2 if size > 400 else size - len(title) - 2
        if room < 40:
            break
        found.append(f"{title}\n{_cut(text, room)}")
        size -= len(found[-1]) + 1
    return found


def _turns(visit: Visit, thread: str) -> Iterator[Message]:
    """Prompt and reply of every visit of the thread that led here, oldest first."""
    for run in visit.ctx.ancestors():
        if run.status == FAILED:
            continue
        outputs = _outputs(visit, run)
        prompt, response = outputs.get("prompt"), outputs.get("response")
        said = isinstance(prompt, str) and isinstance(response, str) and prompt.strip() and response.strip()
        if said and outputs.get("thread") == thread:
            yield Message("user", str(prompt))
            yield Message("assistant", str(response))


def _edges(visit: Visit) -> Iterator[Any]:
    """The drawn edges by which the visit was reached."""
    for edge_id, _ in visit.ctx.consumed:
        edge = visit.graph.edge(edge_id)
        if edge is not None:
            yield edge


def _outputs(visit: Visit, run: StepRun) -> Mapping[str, Any]:
    outputs = visit.ctx.recorded(run.outputs)
    return outputs if isinstance(outputs, Mapping) else {}


def _cut(text: str, size: int) -> str:
    text = " ".join(text.split()) if size <= _VALUE else text.strip()
    return text if len(text) <= size else f"{text[: max(size - 1, 0)]}…"
