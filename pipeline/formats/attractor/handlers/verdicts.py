"""What a reply says of its own outcome: a JSON block at its end, or a line `STATUS: word`; and how it is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.conditions import compile_condition
from pipeline.errors import GraphError
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.handlers.results import CONTRACT
from pipeline.formats.attractor.outcome import FAIL, SUCCESS, NodeOutcome, from_json, normalise

_LINE = re.compile(
    r"^[ \t>*_#`-]*(?:STATUS|OUTCOME)[*_`]*[ \t]*[:=][ \t]*[*_`\"']*([A-Za-z][\w-]*)[*_`\"'.]*[ \t]*$", re.M
)
_BLOCK = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.S)
#: Lines with which an object may begin; of these so many are looked at, from the end.
_OPENING = re.compile(r"^[ \t]*\{", re.M)
_MOST_OPENINGS = 40
_MOST_WORDS = 12


def words_of(visit: Visit) -> list[str]:
    """The outcomes that the node's edges ask for, also behind diamonds, in order; none where they ask for none."""
    graph, words = visit.graph, dict[str, None]()
    ahead = [visit.node.id]
    for name in ahead:
        for edge in graph.outgoing(name):
            words.update(dict.fromkeys(normalise(word) for word in _asked(edge.condition)))
            if edge.target in graph.nodes and graph.kind(edge.target) == kinds.CONDITIONAL and edge.target not in ahead:
                ahead.append(edge.target)
    return list(words)


def _asked(condition: str) -> Iterator[str]:
    with suppress(GraphError):
        for clause, _ in compile_condition(condition).clauses():
            if clause.about_outcome:
                yield from clause.literals


def is_required(visit: Visit) -> bool:
    """Whether a reply without a verdict fails the node: verdict=required, or a goal gate with auto_status=false."""
    node = visit.node
    if node.text("verdict").strip().lower() == "required":
        return True
    return node.flag("goal_gate") is True and node.flag("auto_status") is False


def instruction(visit: Visit) -> str:
    """What the model is told about its verdict; "" where nothing depends on one."""
    words = words_of(visit)
    if not words and not is_required(visit) and not visit.node.flag("goal_gate"):
        return ""
    shown = (
        words[:_MOST_WORDS] if len(words) > 1 else list(dict.fromkeys([SUCCESS, *words, *([] if words else [FAIL])]))
    )
    if shown == [SUCCESS]:
        shown.append(FAIL)
    return (
        "The pipeline goes on by the outcome of this step. End your reply with one line of the form\n"
        f"STATUS: word\nwhere word is one of: {', '.join(shown)}; or with the JSON object that you are asked for. You "
        "cannot write files: where you are asked to write the outcome into a file, write that line instead."
    )


def verdict_of(text: str, *, asked: bool) -> NodeOutcome | None:
    """The outcome that a reply says; None: it says none.

    Args:
        asked: The model was asked for one; else only what can be nothing else at its very end counts.
    """
    if (document := _document(text)) is not None and (asked or CONTRACT.issuperset(document)):
        return from_json(document, "the reply's status")
    found = list(_LINE.finditer(text))
    if not found or not (asked or not text[found[-1].end() :].strip()):
        return None
    word = normalise(found[-1][1].lower() if found[-1][1].isupper() else found[-1][1])
    reason = _reason(text[: found[-1].start()]) if word == FAIL else ""
    return NodeOutcome(word, failure_reason=reason)


def _document(text: str) -> dict[str, Any] | None:
    """The JSON object at the very end of a reply, fenced or not, if it says an outcome."""
    block = _BLOCK.search(text)
    if block is not None:
        return _outcome_in(block[1])
    text = text.rstrip()
    if not text.endswith("}"):
        return None
    starts = [found.start() for found in _OPENING.finditer(text)][-_MOST_OPENINGS:]
    return next((found for start in starts if (found := _outcome_in(text[start:])) is not None), None)


def _outcome_in(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    says = isinstance(found, dict) and any(isinstance(found.get(key), str) for key in ("outcome", "status"))
    return found if says else None


def _reason(text: str) -> str:
    """The last words of a reply that fails: why."""
    words = " ".join(text.split())
    return words if len(words) <= 300 else f"…{words[-299:]}"
