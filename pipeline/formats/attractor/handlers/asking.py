"""A node's question to the model: which model, with how much of what came before, and the reply it gave or gave before.

After a resume the first node of a conversation is asked with less: nobody remembers the conversation any more. A reply
that was paid for before the run stopped is used as it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.attributes import FIDELITIES, OUR_PROVIDERS
from pipeline.dot.model import DotGraph, DotNode
from pipeline.errors import ConfigError, ModelRejected, ModelTruncated, Pause
from pipeline.formats.attractor.handlers.fidelity import COMPACT, FULL, Told, mode_of, told
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from pipeline.llm.base import Message, Reply, Request, Segment

#: Options: run without any model; the mode of the first node after a resume.
SIMULATE, RESUME_FIDELITY = "simulate", "resume_fidelity"
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")
_MAX_TOKENS = 16_000
#: Said to a model that is told less than its graph wants; so a request says by itself in which mode it was asked.
_RESUMED = "This run was resumed; the conversation before this step is told as: {}."
#: Modes in which an attempt that a resume interrupted may have asked already.
_MODES = (FULL, COMPACT, *(mode for mode in FIDELITIES if mode.startswith("summary:")))


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and with how much of what came before it was asked for."""

    reply: Reply
    told: Told
    #: The mode the graph says; other than `told.mode` where a resume took it down.
    configured: str


def ask(visit: Visit, prompt: str, rules: str = "") -> Answered | NodeOutcome:
    """Ask the model a node's prompt; or how the node fails.

    Args:
        rules: What else it is told, after what came before.

    Raises:
        Pause: Nothing more can be asked in this process.
    """
    node = visit.node
    if provider := foreign_provider(node):
        return failure(f"Node {node.id!r} asks for the provider {provider!r}; there is anthropic only.", "config")
    configured = mode_of(visit)
    found, request = _chosen(visit, configured, prompt, rules)
    try:
        reply = visit.ctx.ask(request)
    except ConfigError as error:
        # There is no model: no failure that a graph could route around.
        raise Pause("failed", error) from None
    except ModelTruncated as error:
        return failure(error.message, "truncated", outputs=_outputs(prompt, found))
    except ModelRejected as error:
        return failure(error.message, "deterministic", outputs=_outputs(prompt, found))
    if reply.refused:
        said = {**_outputs(prompt, found), "response": reply.text}
        return failure("The model declined to answer.", "refusal", outputs=said)
    return Answered(reply, found, configured)


def foreign_provider(node: DotNode) -> str:
    """The provider a node asks for where it is none of ours; "" otherwise."""
    said = node.text("llm_provider").strip()
    return "" if said.lower() in OUR_PROVIDERS else said


def check_providers(graph: DotGraph, options: Mapping[str, Any], services: Mapping[str, Any]) -> None:
    """Refuse a graph whose nodes ask for models that cannot be asked; to be asked before a run begins.

    Raises:
        ConfigError: Names the nodes and what they ask for.
    """
    if options.get(SIMULATE) or services.get("backend") is not None:
        return
    nodes = [node for node in graph.nodes.values() if graph.kind(node) == kinds.CODERGEN]
    strange = [f"{node.id} ({found})" for node in nodes if (found := foreign_provider(node))]
    if strange:
        more = f" and {len(strange) - 8} more" if len(strange) > 8 else ""
        raise ConfigError(
            f"Only Claude models can be asked; other providers are named by {', '.join(strange[:8])}{more}.",
            hint='Write llm_provider="anthropic" and a Claude model there, or try the graph with --simulate.',
        )


def _chosen(visit: Visit, configured: str, prompt: str, rules: str) -> tuple[Told, Request]:
    """What the visit asks: what this attempt asked before and was answered, else by its mode now."""
    now = _mode_now(visit, configured)
    resumed = configured == FULL and visit.ctx.resumed_at
    ways: dict[str, tuple[Told, Request]] = {}
    for mode in dict.fromkeys((*_MODES, now) if resumed else (now,)):
        found = told(visit, mode)
        if mode != configured:
            found = replace(found, preamble=f"{_RESUMED.format(mode)}\n{found.preamble}".rstrip())
        ways[mode] = found, request_of(visit, prompt, found, rules)
        if visit.ctx.resumed_at and visit.ctx.answered(ways[mode][1]):
            return ways[mode]
    return _heard(visit, ways, rules) or ways[now]


def _heard(visit: Visit, ways: Mapping[str, tuple[Told, Request]], rules: str) -> tuple[Told, Request] | None:
    """Return what this attempt asked and was answered where only the rules for its end were worded otherwise then.

    They follow the edges (and the program): who mends the edges after a reply that none of them took buys no other.
    """
    heard = visit.ctx.answered_requests() if visit.ctx.resumed_at else []
    for found, request in ways.values():
        for asked in heard:
            if _same_but_rules(asked, request, rules):
                return found, asked
    return None


def _same_but_rules(asked: Request, request: Request, rules: str) -> bool:
    own = [part.text for part in request.system if part.text != rules]
    former = [part.text for part in asked.system]
    same = (asked.model, asked.effort, list(asked.messages)) == (request.model, request.effort, list(request.messages))
    return same and former[: len(own)] == own and len(former) <= len(own) + 1


def _mode_now(visit: Visit, configured: str) -> str:
    """The configured mode; less of it for the first node of a conversation after a resume, once."""
    ctx = visit.ctx
    if configured != FULL or not ctx.resumed_at:
        return configured
    asked = (run for run in ctx.ancestors() if visit.graph.kind(run.node) == kinds.CODERGEN)
    if any(run.ended_seq > ctx.resumed_at for run in asked):
        return configured
    wanted = str(ctx.options.get(RESUME_FIDELITY) or COMPACT)
    return wanted if wanted in FIDELITIES else COMPACT


def request_of(visit: Visit, prompt: str, found: Told, rules: str) -> Request:
    """The request of a node's prompt."""
    node, ctx = visit.node, visit.ctx
    effort = node.text("reasoning_effort").strip() or ctx.settings.get("effort")
    return Request(
        model_of(visit),
        [*found.turns, Message("user", prompt)],
        [Segment(part) for part in (node.text("system_prompt").strip(), found.preamble, rules) if part],
        max_tokens=node.number("max_tokens") or visit.graph.number("max_tokens") or _MAX_TOKENS,
        effort=str(effort) if effort else None,
        label=node.id,
    )


def model_of(visit: Visit) -> str:
    """The model a node asks: its own, else the run's; `claude-opus-4.6` is claude-opus-4-6."""
    said = visit.node.text("llm_model").strip()
    if not said:
        return str(visit.ctx.settings.get("model") or "")
    return _DOTTED.sub("-", said.removeprefix("anthropic/"))


def _outputs(prompt: str, found: Told) -> dict[str, Any]:
    return {"prompt": prompt, "fidelity": found.mode, "thread": found.thread}


def outputs_of(prompt: str, answered: Answered) -> dict[str, Any]:
    """What a node records of its question."""
    made = _outputs(prompt, answered.told)
    if answered.told.preamble:
        made["preamble"] = answered.told.preamble
    return made


def changes_of(visit: Visit, answered: Answered) -> dict[str, Any]:
    """The context key that records a mode other than the configured one; none where they are the same."""
    if answered.told.mode == answered.configured:
        return {}
    return {f"internal.fidelity.{visit.node.id}": answered.told.mode}
