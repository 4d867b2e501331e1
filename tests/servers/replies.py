"""What the test server answers: the responder's text, cut and spoiled as a fault of the content says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.servers.bill import blocks, tokens_of
from tests.servers.lessons import task_data

#: The answer to a body; the second argument is a fault of the content to build in, or "".
Responder = Callable[[Mapping[str, Any], str], str]
#: Characters in one piece of a stream.
PIECE = 400


def echo(body: Mapping[str, Any], fault: str) -> str:
    """The last user text, as a JSON object where JSON was asked for."""
    text = "".join(block["text"] for block in blocks(body["messages"][-1]["content"]))
    return json.dumps({"echo": text}) if (body.get("output_config") or {}).get("format") else text


def text_of(responder: Responder, body: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """The reply's text and stop reason."""
    if kind == "refusal":
        return "I can't help with that.", "refusal"
    text = responder(body, kind)
    if kind == "invalid":
        text = text[: len(text) * 2 // 3] + '"]}'
    limit = body["max_tokens"] if kind != "truncated" else min(body["max_tokens"], tokens_of(text) // 2)
    if tokens_of(text) > limit:
        return text.encode("utf-8", "surrogatepass")[: limit * 4].decode("utf-8", "ignore"), "max_tokens"
    return text, "end_turn"


def cuts(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def question(body: Mapping[str, Any]) -> str:
    """What was asked: equal for requests that differ in limits or cache marks only."""
    parts = [body.get("system") or [], *(turn["content"] for turn in body["messages"])]
    texts = [[block["text"] for block in blocks(part)] for part in parts]
    return hashlib.sha256(json.dumps([body["model"], texts]).encode()).hexdigest()


def label(body: Mapping[str, Any]) -> str:
    """The kind of call, where the request carries task data."""
    return str(task_data(body).get("kind", ""))
