"""An answer of a wanted form: asked for again with what is wrong with it, each try a paid call of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.engine.sources import Scope
from pipeline.errors import ConfigError, ModelRefused, TaskRejected
from pipeline.llm.base import Message, Reply, Request
from pipeline.llm.forms import AnswerForm, Misfit, form_of

#: Asks a request; the second one is that of which the newest reply is of no use.
Ask = Callable[[Request, Request | None], Reply]
#: Faults of an answer that its error names.
_MOST_NAMED = 3


def check_request(request: object) -> None:
    """Refuse what is asked in another shape than a Request.

    Raises:
        ConfigError: Says how to write it.
    """
    if not isinstance(request, Request):
        raise ConfigError(
            f"ctx.ask was given a {type(request).__name__}; it takes a Request.", code="invalid_request",
            hint='Write ctx.ask(Request(ctx.settings["model"], [Message("user", text)])).',
        )  # fmt: skip


def typed_answer(
    ask: Ask, scope: Scope, request: Request, returns: Any, tries: int, instead_of: Request | None = None
) -> Any:
    """Return a model's answer as what it shall be.

    Args:
        returns: A pydantic model, a dataclass or a JSON schema.
        tries: How often it is asked at most; each time with what is wrong with the answer before.
        instead_of: As of StepContext.ask, for the first try.

    Raises:
        ConfigError: `returns` is none of these, or `tries` is no count; before anything is asked.
        ModelRefused: The model declined.
        TaskRejected: No answer fits; the attempt is closed, so that a resume asks anew.
    """
    form = _checked(request, returns, tries)
    asked, former = replace(request, schema=form.schema), instead_of
    found: Misfit
    for _ in range(tries):
        reply = ask(asked, former)
        if reply.refused:
            scope.unfit = True
            raise ModelRefused(f"The model declined to answer ({request.label}).", hint="Change the request.")
        try:
            value = form.read(reply.text)
        except Misfit as error:
            scope.unfit = True
            found, former = error, asked
            asked = replace(asked, messages=[*request.messages, *_again(reply, error.faults)])
        else:
            # It may fit although the schema says otherwise: a model of pydantic takes "5" for a number.
            scope.unfit = False
            return value
    first = "; ".join(found.faults[:_MOST_NAMED])
    raise TaskRejected(
        f"No answer in {tries} {'try' if tries == 1 else 'tries'} fits {form.name} ({request.label}). Last: {first}.",
        code="answer_misfit", faults=found.faults,
        hint="Resume to ask again; or ask for less, say more in the prompt, or give more tries=….",
    )  # fmt: skip


def _checked(request: Request, returns: Any, tries: int) -> AnswerForm:
    if type(tries) is not int or tries < 1:
        raise ConfigError(f"tries={tries!r}: it must be a count of at least 1.", code="invalid_tries")
    if request.schema is not None:
        text = "The request has a schema of its own, and returns=… gives another."
        raise ConfigError(
            text, code="two_schemas", hint="Leave one of them out: returns=SCHEMA checks the answer, too."
        )
    return form_of(returns)


def _again(reply: Reply, faults: Sequence[str]) -> list[Message]:
    """Return the turns that follow an answer that does not fit."""
    lines = "\n".join(f"- {fault}" for fault in faults)
    text = f"This answer does not have the form that was asked for:\n{lines}\nGive the whole answer again, corrected."
    return [Message("assistant", reply.text if reply.text.strip() else "(no text)"), Message("user", text)]
