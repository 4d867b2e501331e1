"""The kinds of nodes that are built in, and which one a type or a shape means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

START, EXIT, CODERGEN, CONDITIONAL = "start", "exit", "codergen", "conditional"
HUMAN, TOOL, PARALLEL, FAN_IN, LOOP = "wait.human", "tool", "parallel", "parallel.fan_in", "stack.manager_loop"
#: A child pipeline's first and last node: they begin and end no run.
CHILD_START, CHILD_EXIT = "stack.child_start", "stack.child_exit"


class Kind(NamedTuple):
    """One kind of node that is built in."""

    #: Value of `type`; handlers are registered under it.
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
BY_TYPE: Mapping[str, Kind] = {kind.type: kind for kind in KINDS}

#: Kinds that do no work of their own: `last_stage` never names them.
IDLE = frozenset({START, EXIT, CONDITIONAL, PARALLEL, CHILD_START, CHILD_EXIT})

#: Shape → type; then that of the other dialect (`dialect="split"`), whose ellipse starts or ends by its edges.
SHAPES: Mapping[str, str] = {kind.shape: kind.type for kind in KINDS}
SPLIT_SHAPES: Mapping[str, str] = {
    "Mdiamond": START, "Msquare": EXIT, "box": CODERGEN, "diamond": CONDITIONAL, "hexagon": PARALLEL,
    "invhouse": FAN_IN, "house": HUMAN, "component": TOOL, "tab": LOOP,
}  # fmt: skip
#: Other spellings of a type.
TYPE_ALIASES: Mapping[str, str] = {"exec": TOOL, "human": HUMAN, "fan_in": FAN_IN, "manager_loop": LOOP}

#: Ids that start or end a graph in which no shape or type does.
START_IDS, EXIT_IDS = ("start", "Start"), ("exit", "Exit", "end", "End")

#: Attributes that hold a tool's command, and a prompt: the first that is set counts.
COMMANDS = ("tool_command", "script", "command")
PROMPTS = ("prompt", "llm_prompt", "goal")
#: Where a failure, or an unsatisfied goal gate, goes back to.
RETRY_TARGETS = ("retry_target", "fallback_retry_target")
