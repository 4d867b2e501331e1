"""A model whose replies are given beforehand: for tests, demonstrations and library users. No network."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.errors import ConfigError, ModelRejected
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.providers import ANTHROPIC

#: What one scripted answer may be: a whole Reply, its text, JSON to be written as text, or an error to raise.
Answer = Reply | str | Mapping[str, Any] | BaseException
Script = Callable[[Request], Answer] | Sequence[Answer]


#: Characters of the question that a stand-in repeats; how deep it follows a schema.
_MOST_ASKED, _DEEPEST = 200, 20
#: Texts of the forms that a schema may name.
_FORMATS = {
    "date": "2026-01-01", "date-time": "2026-01-01T09:00:00Z", "time": "09:00:00", "duration": "PT1H",
    "email": "name@example.org", "uri": "https://example.org/", "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip


class ScriptedModel:
    """Answers from a function of the request, or from a list in the order of the calls.

    Any number of threads may call it at once; a function must then be thread-safe itself.
    """

    def __init__(
        self,
        replies: Script = ("ok",),
        *,
        model_id: str = "scripted",
        paid: bool = False,
        author: str = "model",
        provider: str = ANTHROPIC,
    ) -> None:
        """Take the script.

        Args:
            replies: A list is used up call by call; one more call is ModelRejected.
            paid: True: replies carry a usage (one token per four bytes) and need a price.
            author, provider: As in ModelInfo.
        """
        self.model_id = model_id
        #: Every request asked, in order of arrival.
        self.requests: list[Request] = []
        #: Calls running now, and the most there were at once.
        self.in_flight = 0
        self.most_in_flight = 0
        self.closed = False
        if isinstance(replies, str):
            text = "ScriptedModel was given a text; it takes a list of replies, or a function of the request."
            raise ConfigError(text, code="invalid_argument", argument="replies", hint='Write ScriptedModel(["…"]).')
        self._script = replies if callable(replies) else _in_turn(replies)
        self._info = ModelInfo(model_id, paid=paid, author=author, provider=provider)
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """Return the number of requests made."""
        return len(self.requests)

    def check(self) -> ModelInfo:
        return self._info

    def complete(self, request: Request) -> Reply:
        """Return the next scripted answer; raise a scripted error."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = self._script(request)
        finally:
            with self._lock:
                self.in_flight -= 1
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)
        return Reply(
            text,
            "end_turn",
            usage=usage_of(request, text) if self._info.paid else {},
            model=request.model or self.model_id,
            request_id=f"req_scripted_{number:06d}",
        )

    def close(self) -> None:
        self.closed = True


def offline_model() -> ScriptedModel:
    """Return the model named "offline": it gives stand-in answers, for $0.00."""
    return ScriptedModel(stand_in, model_id="offline", author="offline", provider="offline")


def stand_in(request: Request) -> str:
    """Return an answer that only shows what was asked, where no model is at hand: of the form that the schema wants."""
    asked = " ".join(request.messages[-1].text.split()) if request.messages else ""
    text = f"[offline stand-in for {request.label}] {asked[:_MOST_ASKED]}"
    if request.schema is None:
        return text
    return json.dumps(_instance(request.schema, request.schema, text, 0), sort_keys=True)


def _instance(schema: Any, root: Mapping[str, Any], text: str, depth: int) -> Any:
    """Return a small value that fits a JSON schema, as far as this knows schemas."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if isinstance(ref := schema.get("$ref"), str):
        found: Any = root
        for name in ref.removeprefix("#/").split("/"):
            found = found.get(name) if isinstance(found, Mapping) else None
        return _instance(found, root, text, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _instance(schema[key][0], root, text, depth + 1)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        wanted = schema.get("properties") or {}
        return {name: _instance(each, root, text, depth + 1) for name, each in wanted.items()}
    if kind == "array":
        return [_instance(schema.get("items"), root, text, depth + 1) for _ in range(int(schema.get("minItems") or 0))]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    told = _FORMATS.get(str(schema.get("format")), text)
    return {"boolean": False, "null": None}.get(
        str(kind), told[: schema.get("maxLength") or len(told)].ljust(schema.get("minLength") or 0, ".")
    )


def _number(schema: Mapping[str, Any], *, whole: bool) -> int | float:
    """Return a number between the limits of a schema: the least, or one in the middle of two that it may not be."""
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if not whole and above is not None and below is not None:
        return float(above + below) / 2
    least: int | float = schema.get("minimum", 0 if above is None else above + 1)
    most: int | float = schema.get("maximum", least if below is None else below - 1)
    return min(least, most)


def usage_of(request: Request, text: str) -> dict[str, Any]:
    """Return a usage like the provider's: one token per four bytes, at least one; nothing cached."""
    return {
        "input_tokens": max(1, request.size() // 4),
        "output_tokens": max(1, len(text.encode("utf-8", "surrogatepass")) // 4),
        "service_tier": "standard",
    }


def _in_turn(replies: Sequence[Answer]) -> Callable[[Request], Answer]:
    lock = threading.Lock()
    rest: Iterator[Answer] = iter(tuple(replies))

    def answer(request: Request) -> Answer:
        with lock:
            for reply in rest:
                return reply
        text = f"The script holds {len(replies)} replies; a call ({request.label}) asked for one more."
        return ModelRejected(text, code="script_exhausted")

    return answer
