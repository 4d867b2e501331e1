"""Request → the arguments of `messages.create`: blocks, cache marks, effort and the answer's schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.errors import ModelRejected
from pipeline.llm.base import Message, Request, Segment
from pipeline.llm.faults import redact

#: The provider's limit of cache marks a request.
CACHE_MARKS = 4

Transform = Callable[[dict[str, Any]], dict[str, Any]]


def parameters(request: Request, model_id: str, transform: Transform) -> dict[str, Any]:
    """The request as arguments of `messages.create`.

    `transform` makes a JSON schema one that the provider takes.

    Raises:
        ModelRejected: The schema cannot be expressed for the provider.
    """
    sent: dict[str, Any] = {
        "model": request.model or model_id,
        "max_tokens": request.max_tokens,
        "messages": [_turn(turn) for turn in request.messages],
    }
    if system := _system(request.system):
        sent["system"] = system
    output: dict[str, Any] = {}
    if request.effort is not None:
        output["effort"] = request.effort
    if request.schema is not None:
        output["format"] = {"type": "json_schema", "schema": _schema(request.schema, request.label, transform)}
    if output:
        sent["output_config"] = output
    return sent


def _turn(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": [{"type": "text", "text": _sendable(turn.text)}]}


def _system(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """System blocks; of more than four cache marks the last four count, as they mark the longest prefixes."""
    parts = [part for part in segments if part.text]
    marked = [index for index, part in enumerate(parts) if part.cache][-CACHE_MARKS:]
    blocks: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        block: dict[str, Any] = {"type": "text", "text": _sendable(part.text)}
        if index in marked:
            block["cache_control"] = {"type": "ephemeral"}
        blocks.append(block)
    return blocks


def _schema(schema: Mapping[str, Any], label: str, transform: Transform) -> dict[str, Any]:
    try:
        return transform(dict(schema))
    except (ValueError, TypeError, AssertionError) as error:
        raise ModelRejected(f"The schema of {label!r} cannot be sent: {redact(str(error))}", stops_run=True) from None


_LONE = re.compile("[\ud800-\udfff]")


def _sendable(text: str) -> str:
    """The text with lone surrogates replaced: they survive in records, but UTF-8 cannot carry them."""
    return _LONE.sub("\N{REPLACEMENT CHARACTER}", text)
