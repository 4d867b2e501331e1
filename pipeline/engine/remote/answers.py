"""What a worker answers: plain JSON, also of an error, which is made anew by whoever asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline import errors
from pipeline.errors import Pause, PipelineError

#: How a worker left a task: its end is recorded in its part; its next call needs more room under the ceiling (`spent`,
#: `worst`); the run must pause (`detail`, `error`); the part is closed; the worker cannot do it (`error`).
ENDED, NEEDS, PAUSED, CLOSED, REFUSED = "ended", "needs", "paused", "closed", "refused"

Answer = dict[str, Any]


def paused(pause: Pause) -> Answer:
    """The answer to a pause."""
    return {"how": PAUSED, "detail": pause.detail, "error": error_json(pause.cause)}


def refused(error: PipelineError) -> Answer:
    """The answer of a worker that cannot do the task."""
    return {"how": REFUSED, "error": error_json(error)}


def error_json(error: PipelineError) -> dict[str, Any]:
    """An error as JSON."""
    data = {key: value for key, value in error.data.items() if _is_plain(value)}
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"type": type(error).__name__, **words, "data": data}


def error_of(found: Mapping[str, Any]) -> PipelineError:
    """The error that an answer tells of."""
    kind = getattr(errors, str(found.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, PipelineError)):
        kind = PipelineError
    words = {name: str(found.get(name, "")) for name in ("message", "code", "hint")}
    return kind(**words, **dict(found.get("data") or {}))


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
