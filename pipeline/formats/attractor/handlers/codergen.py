"""A node that asks the model its prompt: a paid call, an agent of the user's own, or a simulation.

The reply is the node's output; its beginning stands in the context; what it says of its outcome is the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from pipeline.engine.step import StepContext
from pipeline.formats.attractor.handlers import asking, verdicts
from pipeline.formats.attractor.handlers.expansion import Names, expand
from pipeline.formats.attractor.handlers.fidelity import mode_of, thread_of
from pipeline.formats.attractor.handlers.left import own_name
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.handlers.results import allowed, outcome_of, replied
from pipeline.formats.attractor.handlers.tool import workdir
from pipeline.formats.attractor.outcome import NodeOutcome, failure, from_json

#: Name of the service that answers prompts in the place of the model.
BACKEND = "backend"


class Backend(Protocol):
    """An agent of the user's own; its attribute `effect` (read, write, external) is what it does outside: else read.

    One that has `apart(name, workdir)` is asked for the backend of each visit; all others must bear being called by
    several threads at once.
    """

    def run(self, node: Any, prompt: str, context: Mapping[str, Any]) -> Any:
        """The reply as text, or a NodeOutcome."""


def codergen(visit: Visit) -> NodeOutcome:
    """The reply to the node's prompt, and the outcome that it says.

    Raises:
        Pause: Nothing more can be asked in this process.
    """
    ctx, node = visit.ctx, visit.node
    prompt = expand(node.prompt, Names(visit).get)
    if ctx.options.get(asking.SIMULATE):
        said = verdicts.simulated(visit)
        return replied(f"[Simulated] {node.id}: no model was asked.", said, prompt=prompt, fidelity=mode_of(visit))
    backend = ctx.services.get(BACKEND)
    if backend is not None:
        return _by_backend(visit, backend, prompt)
    answered = asking.ask(visit, prompt, verdicts.instruction(verdicts.asked_of(visit)))
    if isinstance(answered, NodeOutcome):
        return answered
    made = judged(visit, answered.reply.text, asking.outputs_of(prompt, answered))
    return replace(made, context_updates={**made.context_updates, **asking.changes_of(visit, answered)})


def judged(visit: Visit, text: str, outputs: Mapping[str, Any]) -> NodeOutcome:
    """A reply with the outcome that it says; success where it says none, unless it must."""
    said, verdict = verdicts.verdict_of(text, verdicts.asked_of(visit))
    if not verdict and verdicts.is_required(visit):
        said = failure("The reply says no outcome, and this node needs one.", "no_verdict")
    if said is None:
        auto = visit.node.flag("auto_status")
        said = NodeOutcome(notes="auto-status: the reply says no outcome." if auto else "")
    said = replace(said, context_updates=allowed(said.context_updates, visit.ctx))
    return replied(text, said, **outputs)


def _by_backend(visit: Visit, backend: Backend, prompt: str) -> NodeOutcome:
    """What the user's own agent answers, recorded as a task: it is not asked again once it has answered."""
    ctx, node = visit.ctx, visit.node
    effect = str(getattr(backend, "effect", "read"))
    context = {key: ctx.context[key] for key in ctx.context}
    if (apart := getattr(backend, "apart", None)) is not None:
        try:
            backend = apart(own_name(ctx), workdir(visit))
        except ValueError as error:
            return failure(f"The agent could not be run: {error}.", "config")

    def body(_: StepContext, given: str) -> dict[str, Any]:
        return _recorded(backend.run(node, given, context))

    # A later attempt asks anew: what the one before it made did not do.
    name = "backend" if ctx.attempt == 1 else f"backend {ctx.attempt}"
    done = ctx.task(name, body, prompt, effect=effect)
    thread = thread_of(visit, ctx.nearest(1))
    outputs = {"prompt": prompt, "fidelity": mode_of(visit), "thread": thread, **done["outputs"]}
    if done["text"] is not None:
        return judged(visit, done["text"], outputs)
    said = from_json(done["outcome"], "the backend's outcome")
    return replace(said, outputs=outputs)


def _recorded(value: Any) -> dict[str, Any]:
    """What a backend returned, as a task's value."""
    if isinstance(value, str):
        return {"text": value, "outcome": None, "outputs": {}}
    made = outcome_of(value)
    document = {
        "outcome": made.status, "preferred_label": made.preferred_label, "notes": made.notes,
        "suggested_next_ids": list(made.suggested_next_ids), "context_updates": dict(made.context_updates),
        "failure_reason": made.failure_reason, "failure_class": made.failure_class,
    }  # fmt: skip
    return {"text": None, "outcome": document, "outputs": dict(made.outputs)}
