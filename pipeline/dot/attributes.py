"""The one table of attributes: which there are, how each is read, what an edit means for a resumed run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.values import Value, as_decimal, as_flag, as_number, as_seconds, as_text

GRAPH, NODE, EDGE = "graph", "node", "edge"
#: Visits of a node where the graph names no limit.
DEFAULT_VISITS = 100


class Form(Enum):
    """How a value is read."""

    TEXT = "text"
    #: A whole number, not below 0.
    COUNT = "count"
    NUMBER = "number"
    FLAG = "flag"
    #: A duration, or seconds without a unit.
    TIME = "time"


#: Form → its reader (None: no such value), what a value that it cannot read is not, and an example.
READERS: Mapping[Form, tuple[Callable[[Value], float | None], str, str]] = {
    Form.COUNT: (as_number, "not a whole number", "3"),
    Form.NUMBER: (as_decimal, "not a number", "1"),
    Form.FLAG: (as_flag, "neither true nor false", "true"),
    Form.TIME: (as_seconds, "not a duration", "90s, 5m or 2h"),
}


class Use(Enum):
    """What an attribute decides, and so what an edit of it means for a run that is resumed."""

    #: What a node makes: finished work is void.
    WORK = "run again"
    #: Where the run leads next: finished work is kept, and the person who edits it is asked.
    ROUTE = "asked about"
    #: How often, how long, how many at once: holds from now on.
    PACE = "taken over"
    #: Nothing that is read here: text for people, and what other engines read.
    NONE = "nothing"
    #: Colours, lines and remarks.
    DRAWN = "drawn"


#: What decides something.
DECIDING = frozenset({Use.WORK, Use.ROUTE, Use.PACE})


class Attribute(NamedTuple):
    """One attribute."""

    name: str
    #: graph, node, edge.
    of: tuple[str, ...]
    use: Use
    form: Form = Form.TEXT
    #: The few words it may be; (): any.
    words: tuple[str, ...] = ()
    #: Kinds of nodes that read it; (): all that work.
    kinds: tuple[str, ...] = ()
    #: Value where it is not set, for people.
    default: str = ""
    #: What it means, for people; "": it is not listed.
    means: str = ""
    #: The attribute in whose row it is listed.
    like: str = ""
    #: What to do instead, of one that is not heeded: a rule warns of it.
    instead: str = ""


FIDELITIES = ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_JOINS = ("wait_all", "first_success", "quorum", "k_of_n")
_RETRIES = ("none", "standard", "aggressive", "linear", "patient")
_ASKS = (kinds.CODERGEN, kinds.FAN_IN)
_PROMPTED = (kinds.CODERGEN, kinds.HUMAN, kinds.FAN_IN)
_ALL, _NODE, _EDGE, _GRAPH = (GRAPH, NODE, EDGE), (NODE,), (EDGE,), (GRAPH,)
_WORK, _ROUTE, _PACE, _NONE = Use.WORK, Use.ROUTE, Use.PACE, Use.NONE
_COUNT, _FLAG, _TIME = Form.COUNT, Form.FLAG, Form.TIME

#: Those that are read, in the order in which they are listed.
_READ: tuple[Attribute, ...] = (
    Attribute("goal", _GRAPH, _WORK, means="`$goal` in prompts"),
    Attribute("label", _ALL, _NONE, default="the id",
              means="what people read; of an edge, a choice: `[Y] Yes`, `[Y]es`, `Y) Yes`, `Y - Yes`"),
    Attribute("prompt", _NODE, _WORK, kinds=_PROMPTED, default="the label",
              means="what the model (a person) is asked"),
    Attribute("llm_prompt", _NODE, _WORK, kinds=_PROMPTED, like="prompt"),
    Attribute("goal", _NODE, _WORK, kinds=_PROMPTED, like="prompt"),
    Attribute("system_prompt", _NODE, _WORK, kinds=_ASKS, means="what the model is told before all else"),
    Attribute("verdict", _NODE, _WORK, kinds=(kinds.CODERGEN,), means="`required`: a reply that says no outcome fails"),
    Attribute("max_retries", _NODE, _PACE, _COUNT, default="0", means="further attempts after the first"),
    Attribute("default_max_retries", _GRAPH, _PACE, _COUNT, like="max_retries"),
    Attribute("default_max_retry", _GRAPH, _PACE, _COUNT, like="max_retries"),
    Attribute("retry_policy", (NODE, GRAPH), _PACE, words=_RETRIES, default="standard",
              means="waits between attempts: none, standard, aggressive, linear, patient"),
    Attribute("retry_backoff", (NODE, GRAPH), _PACE, words=(*_RETRIES, "exponential"), like="retry_policy"),
    Attribute("retry_jitter", (NODE, GRAPH), _PACE, Form.NUMBER, like="retry_policy"),
    Attribute("goal_gate", _NODE, _ROUTE, _FLAG, default="false",
              means="the run does not end before this has succeeded"),
    Attribute("retry_target", (NODE, GRAPH), _ROUTE,
              means="where to continue after a failure, or from an unsatisfied gate"),
    Attribute("fallback_retry_target", (NODE, GRAPH), _ROUTE, like="retry_target"),
    Attribute("fallback", _GRAPH, _ROUTE, like="retry_target"),
    Attribute("max_visits", (NODE, EDGE), _PACE, _COUNT, default=str(DEFAULT_VISITS),
              means="how often a node is visited (an edge taken) at most"),
    Attribute("max_node_visits", _GRAPH, _PACE, _COUNT, like="max_visits"),
    Attribute("max_restarts", _GRAPH, _PACE, _COUNT, default="5, 3",
              means="how often `loop_restart` edges are taken; equal failures until a loop is broken off"),
    Attribute("loop_restart_signature_limit", _GRAPH, _PACE, _COUNT, like="max_restarts"),
    Attribute("loop_restart_persist_keys", _GRAPH, _ROUTE, means="context keys that a restart keeps, with commas"),
    Attribute("timeout", _NODE, _PACE, _TIME, means="how long a command, an agent or a person may take; "
              "a model's reply is waited for, since it is paid for"),
    Attribute("human.timeout", _NODE, _PACE, _TIME, like="timeout"),
    Attribute("allow_partial", _NODE, _ROUTE, _FLAG, default="false", means="used-up retries count as partial_success"),
    Attribute("auto_status", _NODE, _ROUTE, _FLAG, default="false",
              means="no status is success; what a command's exit code or an outcome says is kept"),
    Attribute("continue_on_fail", _NODE, _ROUTE, _FLAG, default="false", means="a failure does not stop"),
    Attribute("tool_command", _NODE, _WORK, kinds=(kinds.TOOL,),
              means="shell command of a tool"),
    Attribute("script", _NODE, _WORK, kinds=(kinds.TOOL,), like="tool_command"),
    Attribute("command", _NODE, _WORK, kinds=(kinds.TOOL,), like="tool_command"),
    Attribute("effect", _NODE, _PACE, default="by type", means="what it does outside the run (pure, read, write, "
              "external); whether it is done again where its end is unknown"),
    Attribute("repeatable", _NODE, _PACE, _FLAG, like="effect"),
    Attribute("question", _NODE, _WORK, kinds=(kinds.HUMAN,), default="the label", means="what a person is asked"),
    Attribute("mode", _NODE, _WORK, kinds=(kinds.HUMAN,), default="multiple_choice",
              means="how a person is asked: multiple_choice, yes_no, confirmation, freeform"),
    Attribute("question_type", _NODE, _WORK, kinds=(kinds.HUMAN,), like="mode"),
    Attribute("human.input", _NODE, _WORK, kinds=(kinds.HUMAN,), like="mode"),
    Attribute("human.default_choice", _NODE, _ROUTE,
              means="choice once the time is up; a question without an answer is never approved"),
    Attribute("default_choice", _NODE, _ROUTE, like="human.default_choice"),
    Attribute("join_policy", _NODE, _ROUTE, words=_JOINS, default="wait_all",
              means="wait_all, first_success, quorum, k_of_n"),
    Attribute("k", _NODE, _ROUTE, _COUNT, like="join_policy"),
    Attribute("join_k", _NODE, _ROUTE, _COUNT, like="join_policy"),
    Attribute("quorum", _NODE, _ROUTE, like="join_policy"),
    Attribute("max_parallel", _NODE, _PACE, _COUNT, default="4", means="branches at once"),
    Attribute("stack.child_dotfile", (GRAPH, NODE), _ROUTE,
              means="the child pipeline; the folder its commands run in, below that of the run"),
    Attribute("stack.child_dot_source", _NODE, _ROUTE, like="stack.child_dotfile"),
    Attribute("stack.child_workdir", (GRAPH, NODE), _ROUTE, like="stack.child_dotfile"),
    Attribute("stack.child_autostart", _NODE, _ROUTE, _FLAG, like="stack.child_dotfile"),
    Attribute("manager.max_cycles", _NODE, _PACE, _COUNT, default="1000", means="visits the child may make"),
    Attribute("manager.stop_condition", _NODE, _ROUTE, means="a condition that ends the child"),
    Attribute("fidelity", _NODE, _WORK, words=FIDELITIES, kinds=_ASKS, default="compact", means="how much of what came "
              "before a prompt shows: full, truncate, compact, summary:low, summary:medium, summary:high"),
    Attribute("context_fidelity", _NODE, _WORK, words=FIDELITIES, kinds=_ASKS, like="fidelity"),
    Attribute("fidelity", _EDGE, _ROUTE, words=FIDELITIES, like="fidelity"),
    Attribute("default_fidelity", _GRAPH, _ROUTE, words=FIDELITIES, like="fidelity"),
    Attribute("context_fidelity_default", _GRAPH, _ROUTE, words=FIDELITIES, like="fidelity"),
    Attribute("thread_id", _NODE, _WORK, kinds=_ASKS, means="which conversation `full` continues"),
    Attribute("thread_id", (EDGE, GRAPH), _ROUTE, like="thread_id"),
    Attribute("default_thread_id", _GRAPH, _ROUTE, like="thread_id"),
    Attribute("context_thread_default", _GRAPH, _ROUTE, like="thread_id"),
    Attribute("llm_model", (NODE, GRAPH), _WORK, kinds=_ASKS, default="the run's", means="the model that is asked"),
    Attribute("model", _NODE, _WORK, kinds=_ASKS, like="llm_model"),
    Attribute("llm_provider", (NODE, GRAPH), _WORK, kinds=_ASKS, default="anthropic", means="whose model it is"),
    Attribute("provider", _NODE, _WORK, kinds=_ASKS, like="llm_provider"),
    Attribute("reasoning_effort", (NODE, GRAPH), _WORK, words=_EFFORTS, kinds=_ASKS, default="the run's",
              means="how hard the model thinks"),
    Attribute("reasoning", _NODE, _WORK, kinds=_ASKS, like="reasoning_effort"),
    Attribute("max_tokens", (NODE, GRAPH), _PACE, _COUNT, default="16000", means="the longest reply"),
    Attribute("class", _NODE, _NONE, means="words for the stylesheet"),
    Attribute("model_stylesheet", _GRAPH, _NONE, means="see [below](#model-stylesheet); what it says counts as said by "
              "the nodes"),
    Attribute("condition", _EDGE, _ROUTE, means="when it is taken"),
    Attribute("weight", _EDGE, _ROUTE, Form.NUMBER, default="0", means="of several edges the heavier first"),
    Attribute("loop_restart", _EDGE, _ROUTE, _FLAG, default="false",
              means="the target starts afresh with `graph.…` alone"),
    Attribute("type", _NODE, _WORK, means="the kind of node, before its `shape`"),
    Attribute("shape", _NODE, _NONE, default="box", means="the kind of node; an edit counts where the kind changes"),
    Attribute("dialect", _GRAPH, _ROUTE, words=("strongdm", "split"), default="strongdm", means="strongdm, split"),
    Attribute("params", _GRAPH, _NONE, means="names that `--param` may give; also `inputs`, `context_keys` of a node"),
    Attribute("inputs", (GRAPH, NODE), _NONE, like="params"),
    Attribute("context_keys", _NODE, _NONE, like="params"),
    Attribute("temperature", _NODE, _NONE, Form.NUMBER, means="not sent: Claude models take none any more",
              instead="Omit it."),
    Attribute("tool_hooks.pre", (GRAPH, NODE), _NONE, means="not run: they go round the tools that a model calls, and "
              "models are given none here", instead="Put the command into a tool node before or after."),
    Attribute("tool_hooks.post", (GRAPH, NODE), _NONE, like="tool_hooks.pre",
              instead="Put the command into a tool node before or after."),
    Attribute("duration", _NODE, _NONE, _TIME, means="of other engines' waiting nodes"),
    Attribute("manager.poll_interval", _NODE, _NONE, _TIME, means="of engines that poll: here a child is looked at "
              "after each of its visits"),
    Attribute("manager.actions", _NODE, _NONE, like="manager.poll_interval"),
)  # fmt: skip
#: What people read, and what other engines read, of graphs, of nodes and of edges.
_FOREIGN: Mapping[str, str] = {
    "name description id URL href target group image": "graph node edge",
    "outputs max_pipeline_duration provenance_version final_output_node final_artifact_key timeout": "graph",
    "node_type backend error_policy outputs must_write is_codergen max_agent_turns agent_tool agent_mode loop_id "
    "loop_max loop_until_file_contains human.multiple human.required parse_json": "node",
    "priority": "edge",
}
#: What Graphviz lays out by: a handler of the user's own may read a `size`, too.
_LAID_OUT = (
    "width height margin ordering layout pos fixedsize labeljust rank tailport headport dir constraint minlen "
    "taillabel headlabel decorate sides rankdir ranksep nodesep splines compound newrank concentrate dpi size "
    "ratio center clusterrank overlap outputorder pad orientation labeldistance labelangle labelfloat regular "
    "skew distortion samehead sametail lhead ltail nojustify showboxes imagescale imagepos headclip tailclip "
    "forcelabels landscape rotate sep esep truecolor viewport charset layers layer pack packmode bb vertices "
    "edgetooltip labeltooltip headtooltip tailtooltip edgeURL labelURL headURL tailURL edgehref labelhref "
    "headhref tailhref edgetarget "
)
_DRAWN = (
    "style color fillcolor fontcolor fontname fontsize penwidth tooltip comment peripheries xlabel labelloc bgcolor "
    "colorscheme gradientangle arrowhead arrowtail arrowsize labelfontcolor labelfontname labelfontsize"
)

TABLE: tuple[Attribute, ...] = (
    *_READ,
    *(Attribute(name, tuple(of.split()), _NONE) for names, of in _FOREIGN.items() for name in names.split()),
    *(Attribute(name, _ALL, _NONE) for name in _LAID_OUT.split()),
    *(Attribute(name, (GRAPH, EDGE), Use.DRAWN) for name in ("shape", "class")),
    *(Attribute(name, _ALL, Use.DRAWN) for name in _DRAWN.split()),
)
_KNOWN: Mapping[str, Mapping[str, Attribute]] = {
    of: {each.name: each for each in reversed(TABLE) if of in each.of} for of in _ALL
}
#: The names that are known: of graphs, of nodes, of edges.
NAMES: Mapping[str, frozenset[str]] = {of: frozenset(known) for of, known in _KNOWN.items()}
#: Names of one thing: of those that are set the first counts.
_SAME = (
    kinds.PROMPTS, kinds.COMMANDS, ("question_type", "mode", "human.input"), ("fidelity", "context_fidelity"),
    ("human.default_choice", "default_choice"), ("k", "join_k"), ("llm_model", "model"), ("llm_provider", "provider"),
    ("reasoning_effort", "reasoning"),
)  # fmt: skip
_GROUP: Mapping[str, tuple[str, ...]] = {name: group for group in _SAME for name in group}
#: Providers that are ours; "" is where none is named.
OUR_PROVIDERS = ("", "anthropic", "claude")
#: What a node says that writes down what holds anyway.
_USUAL = {"question_type": "multiple_choice", "join_policy": "wait_all"}


def attribute(of: str, name: str) -> Attribute | None:
    """Return what is known of an attribute of the graph, a node or an edge; None: nothing reads it."""
    return _KNOWN[of].get(name)


def guide() -> str:
    """Return the table of attributes as the guide to graphs has it."""
    lines = ["| Attribute | Of | Default | Means | Edited on finished work |", "|---|---|---|---|---|"]
    for each in _READ:
        if each.means:
            rows = [each, *(other for other in _READ if other.like == each.name)]
            names = dict.fromkeys(f"`{row.name}`" for row in rows)
            of = sorted({word for row in rows for word in row.of}, key=(NODE, EDGE, GRAPH).index)
            uses = dict.fromkeys(row.use.value for row in rows)
            cells = (", ".join(names), ", ".join(of), each.default, each.means, ", ".join(uses))
            lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def decides(
    of: str, attributes: Mapping[str, Value], use: Use, kind: str = "", *, all_read: bool = False, fidelity: str = ""
) -> dict[str, object]:
    """Return those attributes that decide something, each by one name and in one spelling.

    Args:
        use: WORK or ROUTE.
        kind: The kind of the node.
        all_read: A handler of the user's own works the node, which may read whatever is not drawn.
        fidelity: What holds for nodes that name none.
    """
    found: dict[str, object] = {}
    usual = {} if of != NODE or all_read else {**_USUAL, "fidelity": fidelity}
    for name in attributes:
        group = _GROUP.get(name, (name,)) if of == NODE and not all_read else (name,)
        known = attribute(of, name)
        if not _counts(known, use, kind, all_read=all_read) or group[0] in found:
            continue
        set_ = [attributes[each] for each in group if each in attributes and as_text(attributes[each]).strip()]
        value = _read(set_[0], known) if set_ else None
        said = str(value).strip().lower()
        if (group[0] == "llm_provider" and said in OUR_PROVIDERS) or said == usual.get(group[0]):
            value = None
        if group[0] == "verdict" and usual and said != "required":
            value = None
        # `auto_status=false` says more than nothing.
        if value not in (None, "", False, 0.0) or (value is False and name == "auto_status"):
            found[group[0]] = value
    return found


def _counts(known: Attribute | None, use: Use, kind: str, *, all_read: bool) -> bool:
    if known is None or (all_read and known.use is Use.NONE):
        return all_read and use is Use.WORK
    return known.use is use and (all_read or not known.kinds or kind in known.kinds)


def _read(value: Value, known: Attribute | None) -> object:
    """Return a value as it is read, so that "3" and 3 are the same."""
    reader = READERS.get(known.form) if known is not None else None
    found = reader[0](value) if reader is not None else None
    return as_text(value) if found is None else found
