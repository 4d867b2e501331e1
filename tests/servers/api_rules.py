"""The documented Messages API as far as the product uses it: what is outside of it is a 400, as at the provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERSIONS = frozenset({"2023-06-01", "2026-10-21"})
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
MAX_OUTPUT = 128_000
#: Accepted top-level fields, and whether a value of that Python type is right.
FIELDS: dict[str, type | tuple[type, ...]] = {
    "model": str,
    "max_tokens": int,
    "messages": list,
    "system": (str, list),
    "stream": bool,
    "output_config": dict,
    "thinking": dict,
    "metadata": dict,
    "stop_sequences": list,
    "service_tier": str,
    "tools": list,
    "tool_choice": dict,
    "cache_control": dict,
}
COUNT_FIELDS = frozenset(
    {"model", "messages", "system", "output_config", "thinking", "tools", "tool_choice", "cache_control"}
)
REMOVED = frozenset({"temperature", "top_p", "top_k"})
#: Schema keywords that structured output refuses.
_UNSUPPORTED = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"}
    | {"pattern", "uniqueItems", "oneOf", "patternProperties", "minProperties", "maxProperties"}
)


class Invalid(Exception):
    """The request is outside the documented API."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def check_headers(headers: Mapping[str, str]) -> None:
    """Version, credential and content type."""
    if not (headers.get("x-api-key") or headers.get("authorization", "").startswith("Bearer ")):
        raise Invalid("x-api-key header is required", 401, "authentication_error")
    if headers.get("anthropic-version") not in VERSIONS:
        raise Invalid(f"anthropic-version: {headers.get('anthropic-version')!r} is not a valid version")


def check_message(body: Any, models: Mapping[str, Any]) -> None:
    """A body of POST /v1/messages."""
    _fields(body, frozenset(FIELDS))
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Invalid(f"{name}: Field required")
    if not 0 < body["max_tokens"] <= MAX_OUTPUT:
        raise Invalid(f"max_tokens: {body['max_tokens']} is not between 1 and {MAX_OUTPUT}")
    _check_common(body, models)


def check_count(body: Any, models: Mapping[str, Any]) -> None:
    """A body of POST /v1/messages/count_tokens."""
    _fields(body, COUNT_FIELDS)
    _check_common(body, models)


def _fields(body: Any, allowed: frozenset[str]) -> None:
    if not isinstance(body, dict):
        raise Invalid("the body must be an object")
    for name, value in body.items():
        if name in REMOVED:
            raise Invalid(f"{name}: is not supported by this model")
        if name not in allowed:
            raise Invalid(f"{name}: Extra inputs are not permitted")
        wanted = FIELDS[name]
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise Invalid(f"{name}: Input has the wrong type")


def _check_common(body: dict[str, Any], models: Mapping[str, Any]) -> None:
    if body.get("model") not in models or models[body["model"]]["lifecycle"] == "retired":
        raise Invalid(f"model: {body.get('model')}", 404, "not_found_error")
    marks = _check_system(body.get("system", [])) + _check_messages(body.get("messages"))
    if marks > 4:
        raise Invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    _check_output(body.get("output_config", {}))


def _check_system(system: Any) -> int:
    return (
        0 if isinstance(system, str) else sum(_check_block("system", index, part) for index, part in enumerate(system))
    )


def _check_messages(turns: Any) -> int:
    if not turns:
        raise Invalid("messages: at least one message is required")
    marks = 0
    for number, turn in enumerate(turns):
        where = f"messages.{number}"
        if not isinstance(turn, dict) or set(turn) != {"role", "content"}:
            raise Invalid(f"{where}: must hold role and content")
        if turn["role"] not in ("user", "assistant"):
            raise Invalid(f"{where}.role: must be user or assistant")
        marks += _check_content(where, turn["content"])
    if turns[0]["role"] != "user":
        raise Invalid("messages: first message must use the user role")
    if turns[-1]["role"] == "assistant":
        raise Invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    return marks


def _check_content(where: str, content: Any) -> int:
    if isinstance(content, str):
        if not content.strip():
            raise Invalid(f"{where}: text content blocks must be non-empty")
        return 0
    if not isinstance(content, list) or not content:
        raise Invalid(f"{where}.content: must be text or a list of blocks")
    return sum(_check_block(f"{where}.content", index, part) for index, part in enumerate(content))


def _check_block(where: str, index: int, part: Any) -> int:
    where = f"{where}.{index}"
    if not isinstance(part, dict) or part.get("type") != "text" or not set(part) <= {"type", "text", "cache_control"}:
        raise Invalid(f"{where}: only text blocks are known here")
    if not isinstance(part.get("text"), str) or not part["text"]:
        raise Invalid(f"{where}.text: text content blocks must be non-empty")
    if "cache_control" not in part:
        return 0
    mark = part["cache_control"]
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or not set(mark) <= {"type", "ttl"}:
        raise Invalid(f"{where}.cache_control: must be ephemeral")
    if mark.get("ttl", "5m") not in ("5m", "1h"):
        raise Invalid(f"{where}.cache_control.ttl: must be 5m or 1h")
    return 1


def _check_output(config: dict[str, Any]) -> None:
    if not set(config) <= {"effort", "format"}:
        raise Invalid("output_config: Extra inputs are not permitted")
    if "effort" in config and config["effort"] not in EFFORTS:
        raise Invalid("output_config.effort: unknown value")
    form = config.get("format")
    if form is None:
        return
    if not isinstance(form, dict) or set(form) != {"type", "schema"} or form["type"] != "json_schema":
        raise Invalid("output_config.format: must be a json_schema with its schema")
    _check_schema(form["schema"], "output_config.format.schema")


def _check_schema(schema: Any, where: str) -> None:
    if not isinstance(schema, dict):
        raise Invalid(f"{where}: must be an object")
    if bad := sorted(_UNSUPPORTED & set(schema)):
        raise Invalid(f"{where}: {bad[0]} is not supported")
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise Invalid(f"{where}: for 'object' type, 'additionalProperties' must be explicitly set to false")
    for group in ("properties", "$defs"):
        for name, part in (schema.get(group) or {}).items():
            _check_schema(part, f"{where}.{group}.{name}")
    for name in ("anyOf", "allOf"):
        for index, part in enumerate(schema.get(name) or []):
            _check_schema(part, f"{where}.{name}.{index}")
    if "items" in schema:
        _check_schema(schema["items"], f"{where}.items")
