"""A node that asks the model its prompt: a paid call, an agent of the user's own, or a simulation.

The reply is the node's output; its beginning is in the context; what it says of its outcome is the outcome. After a
resume the first node of a conversation is asked with less: the conversation is lost. A reply that was paid for before
the run stopped is used as it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pipeline.dot import kinds
from pipeline.dot.attributes import FIDELITIES, OUR_PROVIDERS
from pipeline.dot.model import DotGraph, DotNode
from pipeline.engine.step import StepContext
from pipeline.errors import ConfigError, ModelRejected, ModelTruncated, Pause
from pipeline.formats.attractor.handlers import shell, verdicts
from pipeline.formats.attractor.handlers.prompt import COMPACT, FULL, History, filled, history, mode_of, thread_of
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import NodeOutcome, allowed, failure, from_json, outcome_of, replied
from pipeline.llm.base import Message, Reply, Request, Segment

#: Options: run without any model; the mode of the first node after a resume.
SIMULATE, RESUME_FIDELITY = "simulate", "resume_fidelity"
#: Name of the service that answers prompts in the place of the model.
BACKEND = "backend"
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")
_MAX_TOKENS = 16_000
_MOST_REASON = 2000
#: Said to a model that is told less than its graph wants; so a request says by itself in which mode it was asked.
_RESUMED = "This run was resumed; the conversation before this step is told as: {}."
#: Modes in which an attempt that a resume interrupted may have asked already.
_MODES = (FULL, COMPACT, *(mode for mode in FIDELITIES if mode.startswith("summary:")))


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and with how much of what came before it was asked for."""

    reply: Reply
    #: What the node records of its question.
    outputs: Mapping[str, Any]
    #: The context key that records a mode other than the configured one; {} if they are the same.
    changes: Mapping[str, Any]


class Backend(Protocol):
    """An agent of the user's own; its attribute `effect` (read, write, external) is what it does outside: else read.

    One that has `apart(name, workdir)` is asked for the backend of each visit; all others must bear being called by
    several threads at once.
    """

    def run(self, node: Any, prompt: str, context: Mapping[str, Any]) -> Any:
        """Return the reply as text, or a NodeOutcome."""


def codergen(visit: Visit) -> NodeOutcome:
    """Return the reply to the node's prompt, and the outcome that it says.

    Raises:
        Pause: Nothing more can be asked in this process.
    """
    ctx, node = visit.ctx, visit.node
    prompt = filled(visit, node.prompt)
    if ctx.options.get(SIMULATE):
        said = verdicts.simulated(visit)
        return replied(f"[Simulated] {node.id}: no model was asked.", said, prompt=prompt, fidelity=mode_of(visit))
    backend = ctx.services.get(BACKEND)
    if backend is not None:
        return _by_backend(visit, backend, prompt)
    answered = ask(visit, prompt, verdicts.instruction(verdicts.Asked.of(visit)))
    if isinstance(answered, NodeOutcome):
        return answered
    made = _judged(visit, answered.reply.text, answered.outputs)
    return replace(made, context_updates={**made.context_updates, **answered.changes})


def _judged(visit: Visit, text: str, outputs: Mapping[str, Any]) -> NodeOutcome:
    """Return a reply with the outcome that it says; success if it says none, unless it must."""
    said, verdict = verdicts.verdict_of(text, verdicts.Asked.of(visit))
    if not verdict and verdicts.is_required(visit):
        said = failure("The reply says no outcome, and this node needs one.", "no_verdict")
    if said is None:
        said = NodeOutcome(notes="auto-status: the reply says no outcome." if visit.node.flag("auto_status") else "")
    said = replace(said, context_updates=allowed(said.context_updates, visit.ctx))
    return replied(text, said, **outputs)


def _by_backend(visit: Visit, backend: Backend, prompt: str) -> NodeOutcome:
    """Return what the user's own agent answers, recorded as a task: once it has answered it is not asked again."""
    ctx, node = visit.ctx, visit.node
    effect = str(getattr(backend, "effect", "read"))
    context = {key: ctx.context[key] for key in ctx.context}
    if (apart := getattr(backend, "apart", None)) is not None:
        try:
            backend = apart(shell.own_name(ctx), shell.workdir(visit))
        except ValueError as error:
            return failure(f"The agent could not be run: {error}.", "config")

    def body(_: StepContext, given: str) -> dict[str, Any]:
        value = backend.run(node, given, context)
        if isinstance(value, str):
            return {"text": value, "outcome": None, "outputs": {}}
        made = outcome_of(value)
        return {"text": None, "outcome": made.to_json(), "outputs": dict(made.outputs)}

    # A later attempt asks anew: what the one before it made did not do.
    name = "backend" if ctx.attempt == 1 else f"backend {ctx.attempt}"
    done = ctx.task(name, body, prompt, effect=effect)
    thread = thread_of(visit, ctx.place.nearest(1))
    outputs = {"prompt": prompt, "fidelity": mode_of(visit), "thread": thread, **done["outputs"]}
    if done["text"] is not None:
        return _judged(visit, done["text"], outputs)
    return replace(from_json(done["outcome"], "the backend's outcome"), outputs=outputs)


# The paid call


def ask(visit: Visit, prompt: str, rules: str = "") -> Answered | NodeOutcome:
    """Ask the model a node's prompt; or return how the node fails.

    Args:
        rules: What else it is told, after what came before.

    Raises:
        Pause: Nothing more can be asked in this process.
    """
    node = visit.node
    if provider := _foreign_provider(node):
        return failure(f"Node {node.id!r} asks for the provider {provider!r}; only anthropic is supported.", "config")
    configured = mode_of(visit)
    before, request = _chosen(visit, configured, prompt, rules)
    outputs = {"prompt": prompt, "fidelity": before.mode, "thread": before.thread}
    try:
        reply = visit.ctx.ask(request)
    except ConfigError as error:
        # There is no model: no failure that a graph could route around.
        raise Pause("failed", error) from None
    except (ModelTruncated, ModelRejected) as error:
        return failure(error.message, "truncated" if isinstance(error, ModelTruncated) else "deterministic",
                       outputs=outputs)  # fmt: skip
    if reply.refused:
        return failure("The model declined to answer.", "refusal", outputs={**outputs, "response": reply.text})
    if before.preamble:
        outputs["preamble"] = before.preamble
    lowered = before.mode != configured
    return Answered(reply, outputs, {f"internal.fidelity.{node.id}": before.mode} if lowered else {})


def _foreign_provider(node: DotNode) -> str:
    """Return the provider a node asks for if it is none of ours; "" otherwise."""
    said = node.text("llm_provider").strip()
    return "" if said.lower() in OUR_PROVIDERS else said


def check_providers(graph: DotGraph, options: Mapping[str, Any], services: Mapping[str, Any]) -> None:
    """Refuse a graph whose nodes ask for models that cannot be asked; to be asked before a run begins.

    Raises:
        ConfigError: Names the nodes and what they ask for.
    """
    if options.get(SIMULATE) or services.get(BACKEND) is not None:
        return
    nodes = [node for node in graph.nodes.values() if graph.kind(node) == kinds.CODERGEN]
    foreign = [f"{node.id} ({found})" for node in nodes if (found := _foreign_provider(node))]
    if foreign:
        more = f" and {len(foreign) - 8} more" if len(foreign) > 8 else ""
        raise ConfigError(
            f"Only Claude models can be asked; other providers are named by {', '.join(foreign[:8])}{more}.",
            code="foreign_provider",
            hint='Write llm_provider="anthropic" and a Claude model there, or try the graph with --simulate.',
        )


def _chosen(visit: Visit, configured: str, prompt: str, rules: str) -> tuple[History, Request]:
    """Return what the visit asks: what this attempt asked before and was answered, else by its mode now."""
    ctx, now = visit.ctx, _mode_now(visit, configured)
    resumed = configured == FULL and ctx.place.resumed_at
    ways: dict[str, tuple[History, Request]] = {}
    for mode in dict.fromkeys((*_MODES, now) if resumed else (now,)):
        before = history(visit, mode)
        if mode != configured:
            before = replace(before, preamble=f"{_RESUMED.format(mode)}\n{before.preamble}".rstrip())
        ways[mode] = before, _request(visit, prompt, before, rules)
        if ctx.place.resumed_at and ctx.answered(ways[mode][1]):
            return ways[mode]
    # What was answered may differ in the rules for its end only: they follow the edges (and the program). Mending the
    # edges after a reply that none of them took buys no other.
    heard = ctx.place.answered_requests() if ctx.place.resumed_at else []
    found = ((before, asked) for before, request in ways.values() for asked in heard
             if _same_but_rules(asked, request, rules))  # fmt: skip
    return next(found, ways[now])


def _same_but_rules(asked: Request, request: Request, rules: str) -> bool:
    own = [part.text for part in request.system if part.text != rules]
    former = [part.text for part in asked.system]
    same = (asked.model, asked.effort, list(asked.messages)) == (request.model, request.effort, list(request.messages))
    return same and former[: len(own)] == own and len(former) <= len(own) + 1


def _mode_now(visit: Visit, configured: str) -> str:
    """Return the configured mode; less of it for the first node of a conversation after a resume, once."""
    ctx = visit.ctx
    if configured != FULL or not ctx.place.resumed_at:
        return configured
    asked = (run for run in ctx.place.ancestors() if visit.graph.kind(run.node) == kinds.CODERGEN)
    if any(run.ended_seq > ctx.place.resumed_at for run in asked):
        return configured
    wanted = str(ctx.options.get(RESUME_FIDELITY) or COMPACT)
    return wanted if wanted in FIDELITIES else COMPACT


def _request(visit: Visit, prompt: str, before: History, rules: str) -> Request:
    """Return the request of a node's prompt; its model is its own, else the run's (claude-opus-4.6 is …-4-6)."""
    node, ctx = visit.node, visit.ctx
    model = _DOTTED.sub("-", node.text("llm_model").strip().removeprefix("anthropic/"))
    effort = node.text("reasoning_effort").strip() or ctx.settings.get("effort")
    return Request(
        model or str(ctx.settings.get("model") or ""),
        [*before.turns, Message("user", prompt)],
        [Segment(part) for part in (node.text("system_prompt").strip(), before.preamble, rules) if part],
        max_tokens=node.number("max_tokens") or visit.graph.number("max_tokens") or _MAX_TOKENS,
        effort=str(effort) if effort else None,
        label=node.id,
    )


# An agent's command


class AgentCommand:
    """A command that answers prompts (run_dot's --agent-cmd): it reads them from stdin, and prints the reply.

    An outcome.json that it leaves is the outcome. Branches that run at once have a folder each.
    """

    #: It acts outside the run: one that was cut off is not asked again without a person's word.
    effect = "external"
    #: Of a node it reads nothing but its id and its time limit.
    reads_nodes = False

    def __init__(self, command: str, folder: Path, workdir: Path, own: str = "") -> None:
        self.command = command
        self._shared = folder
        self._folder = folder / own
        self._workdir = workdir

    def apart(self, name: str, workdir: Path) -> AgentCommand:
        """Return the same for one visit.

        Args:
            name: Of its own folder, if others run beside it; "": it has the whole one.
            workdir: Where the command runs.
        """
        return AgentCommand(self.command, self._shared, workdir, name)

    def run(self, node: Any, prompt: str, context: Mapping[str, Any]) -> str | NodeOutcome:
        """Return the command's answer: its output, or the outcome it left."""
        seconds = node.seconds("timeout")
        left = shell.OutcomeFolder(self._folder, self._shared)
        done = shell.run(
            self.command, cwd=self._workdir, environment=shell.environment(left.variables(node.id)), seconds=seconds,
            text=prompt,
        )  # fmt: skip
        said = left.read()
        if done.timed_out:
            return failure(f"The agent did not end within {seconds:g} s.", "transient_infra")
        outputs = {"response": done.stdout}
        if done.exit_code:
            words = (done.stderr.strip() or done.stdout.strip())[-_MOST_REASON:]
            return failure(f"The agent ended with exit code {done.exit_code}: {words}", outputs=outputs)
        return done.stdout if said is None else replace(said, outputs={**said.outputs, **outputs})
