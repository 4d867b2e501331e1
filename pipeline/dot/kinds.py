"""Which kind of work a node is, by its type or by its shape; the kinds that are built in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

START, EXIT, CODERGEN, CONDITIONAL = "start", "exit", "codergen", "conditional"
HUMAN, TOOL, PARALLEL, FAN_IN, LOOP = "wait.human", "tool", "parallel", "parallel.fan_in", "stack.manager_loop"


class Kind(NamedTuple):
    """One kind of node that is built in."""

    #: Value of `type`, and what handlers are registered under.
    type: str
    #: Shape that means it.
    shape: str
    purpose: str


#: In the order in which they are listed.
KINDS: tuple[Kind, ...] = (
    Kind(START, "Mdiamond", "Where a run begins; does nothing."),
    Kind(EXIT, "Msquare", "Where a run ends, once its goal gates are satisfied."),
    Kind(CODERGEN, "box", "Asks the model (a paid call) with the node's prompt."),
    Kind(CONDITIONAL, "diamond", "Passes the last outcome on; its edges decide."),
    Kind(HUMAN, "hexagon", "Asks a person to choose one of the edges."),
    Kind(TOOL, "parallelogram", "Runs a shell command, with --allow-tools only."),
    Kind(PARALLEL, "component", "Starts a branch for each edge, side by side."),
    Kind(FAN_IN, "tripleoctagon", "Waits for the branches and gathers their results."),
    Kind(LOOP, "house", "Runs a child pipeline and watches over it."),
)

#: Kinds that do no work of their own, those at a child pipeline's ends too: `last_stage` never names them.
IDLE = frozenset({START, EXIT, CONDITIONAL, PARALLEL, "stack.child_start", "stack.child_exit"})

#: Shape → type.
SHAPES: Mapping[str, str] = {kind.shape: kind.type for kind in KINDS}

#: The other dialect's shapes, for graphs that say `dialect="split"`; its ellipse starts or ends by its edges.
SPLIT_SHAPES: Mapping[str, str] = {
    "Mdiamond": START,
    "Msquare": EXIT,
    "box": CODERGEN,
    "diamond": CONDITIONAL,
    "hexagon": PARALLEL,
    "invhouse": FAN_IN,
    "house": HUMAN,
    "component": TOOL,
    "tab": LOOP,
}

#: Other spellings of a type.
TYPE_ALIASES: Mapping[str, str] = {
    "exec": TOOL,
    "human": HUMAN,
    "fan_in": FAN_IN,
    "manager_loop": LOOP,
}

#: Ids that start or end a graph in which no shape or type does.
START_IDS, EXIT_IDS = ("start", "Start"), ("exit", "Exit", "end", "End")

#: Attributes that hold a tool's command, the first that is set counts.
COMMANDS = ("tool_command", "script", "command")
#: Attributes that hold a prompt, the first that is set counts.
PROMPTS = ("prompt", "llm_prompt", "goal")
