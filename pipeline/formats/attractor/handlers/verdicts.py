"""What a reply says of its own end, and how it is asked for: the outcome, the label, the context keys that edges name.

A reply says it in a JSON object at its end, in lines `KEY: value`, or with a word that the edges ask for as its last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.conditions import readable
from pipeline.dot.demands import LABEL, OUTCOME, PROGRAMS, Demand, Ends, choosable, demands, ways_on
from pipeline.dot.labels import normal_label, without_key
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import (
    CONTRACT,
    FAIL,
    LAST_RESPONSE,
    RETRY,
    SUCCESS,
    NodeOutcome,
    from_json,
    normalise,
    value_text,
)  # fmt: skip
from pipeline.formats.attractor.visit_end import FINAL, is_transient

_LINE = re.compile(
    r"^[ \t>*_#`-]*(?:STATUS|OUTCOME)[*_`]*[ \t]*[:=][ \t]*[*_`\"']*([A-Za-z][\w-]*)[*_`\"'.]*[ \t]*$", re.M
)
_BLOCK = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.S)
#: Lines with which an object may begin; of these so many are looked at, from the end.
_OPENING, _MOST_OPENINGS = re.compile(r"^[ \t]*\{", re.M), 40
_MOST_WORDS = 12
#: Marks round a word: emphasis, quotes, the full stop behind it.
_MARKS = " \t*_`\"'.!"
#: What precedes the word that a reply ends with, if it is said as an answer.
_ANSWERS = re.compile(r"(?:^|[\n:=.!?;,—–→-])[\s*_`\"'(\[]*\Z")
_CLASS, _RESPONSE = "failure_class", "last_response"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reply is asked to say."""

    #: The outcomes that the edges name.
    outcomes: tuple[str, ...] = ()
    #: What they ask for beside it, by key: preferred_label, or a key of the context.
    keys: Mapping[str, Demand] = field(default_factory=dict)
    #: A goal gate, or a node whose outcome is required.
    judged: bool = False

    @classmethod
    def of(cls, visit: Visit) -> Asked:
        """Return what depends on a node's reply: what the conditions of its edges name, also behind diamonds."""
        judged = is_required(visit) or visit.node.flag("goal_gate") is True
        return cls(tuple(_words(visit)), _keys(visit), judged)

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.keys or self.judged)


def is_required(visit: Visit) -> bool:
    """Return whether a reply without a verdict fails the node: verdict=required, or a gate with auto_status=false."""
    node = visit.node
    if node.text("verdict").strip().lower() == "required":
        return True
    return node.flag("goal_gate") is True and node.flag("auto_status") is False


def _words(visit: Visit) -> list[str]:
    """Return the outcomes that the node's edges ask for, also behind diamonds, in order."""
    graph, words = visit.graph, dict[str, None]()
    ahead = [visit.node.id]
    for name in ahead:
        for edge in graph.outgoing(name):
            condition = readable(edge.condition)
            for clause, _ in condition.clauses() if condition else ():
                if clause.about_outcome:
                    words.update(dict.fromkeys(map(normalise, clause.literals)))
            if edge.target in graph.nodes and graph.kind(edge.target) == kinds.CONDITIONAL and edge.target not in ahead:
                ahead.append(edge.target)
    return list(words)


def _keys(visit: Visit) -> dict[str, Demand]:
    ways = ways_on(visit.graph, visit.node.id, visit.outgoing)
    found = {key: demand for key, demand in demands(ways).items() if key != OUTCOME and _is_said(visit, key, demand)}
    if labels := choosable(ways, visit.outgoing):
        asked = found.get(LABEL, Demand())
        found[LABEL] = Demand(tuple(dict.fromkeys((*asked.words, *map(without_key, labels.values())))), asked.tests)
    return found


def _is_said(visit: Visit, key: str, demand: Demand) -> bool:
    """Return whether a reply is to say a key: not what the program sets, nor a parameter of the run."""
    if key == _CLASS:
        return any(word not in FINAL and not is_transient(word) for word in demand.words)
    return key == _RESPONSE or not (key.startswith(PROGRAMS) or key in visit.ctx.params)


def simulated(visit: Visit) -> NodeOutcome:
    """Return an end that the edges take: of several ways each visit the next, so that loops end.

    Success if that alone leads on; a way that asks for a failure is not gone.
    """
    keys, context = _keys(visit), visit.ctx.context
    ends = Ends(lambda key: key in keys, lambda name: value_text(context.get(name)))
    found: list[dict[str, str]] = []
    ways = ways_on(visit.graph, visit.node.id, visit.outgoing)
    labels = choosable(ways, visit.outgoing)
    for way in ways:
        end = ends.that(way)
        if end is None or end.get(OUTCOME) in (FAIL, RETRY):
            continue
        label = next((labels[edge.id] for edge in way.edges if edge.id in labels), "")
        end = {LABEL: label, **end} if label else end
        if not end and way.conditions:
            return NodeOutcome()
        if end not in found:
            found.append(end)
    return _of(dict(found[(visit.ctx.visit - 1) % len(found)])) if found else NodeOutcome()


def _of(said: dict[str, Any]) -> NodeOutcome:
    status, label, kind = said.pop(OUTCOME, SUCCESS), said.pop(LABEL, ""), said.pop(_CLASS, "")
    return NodeOutcome(status, label, context_updates=said, failure_class=kind)


def instruction(asked: Asked) -> str:
    """Return what the model is told to say at the end of its reply; "" if nothing depends on it."""
    if not asked:
        return ""
    if not asked.keys:
        return (
            "The pipeline goes on by the outcome of this step. End your reply with one line of the form\n"
            f"STATUS: word\nwhere word is one of: {', '.join(_outcomes(asked))}; or with the JSON object that you are "
            "asked for. You cannot write files: where you are asked to write the outcome into a file, write that line "
            "instead."
        )
    lines = []
    if asked.outcomes or asked.judged:
        lines.append(f"STATUS: {', '.join(_outcomes(asked))}")
    for key, demand in asked.keys.items():
        parts = [", ".join(demand.words[:_MOST_WORDS])] if demand.words else []
        if demand.tests:
            parts.append(f"a value; the edges ask for {' or '.join(demand.tests)}")
        if key != _RESPONSE:
            lines.append(f"{key}: {' or '.join(parts)}")
    told = []
    if lines:
        told += [
            "The pipeline goes on by what this step says. End your reply with a line of the form KEY: value for each "
            "of these keys; what follows a key here is what its value may be:", *lines,
            "You may write them as one JSON object instead. You cannot write files: where you are asked to write them "
            "into a file, write these lines instead.",
        ]  # fmt: skip
    if (demand := asked.keys.get(_RESPONSE, Demand())) != Demand():
        wanted = [*(f"= {word}" for word in demand.words), *demand.tests]
        told.append(f"It also goes on by the first {LAST_RESPONSE} characters of your reply: {' or '.join(wanted)}.")
    return "\n".join(told)


def _outcomes(asked: Asked) -> list[str]:
    words = list(asked.outcomes)
    if len(words) > 1:
        return words[:_MOST_WORDS]
    shown = list(dict.fromkeys([SUCCESS, *(words or [FAIL])]))
    return [*shown, FAIL] if shown == [SUCCESS] else shown


def verdict_of(text: str, asked: Asked | None = None) -> tuple[NodeOutcome | None, bool]:
    """Return what a reply says of its end, None if that is nothing; and whether it says an outcome.

    Args:
        asked: What it was asked to say; nothing: only what can be nothing else at its very end counts.
    """
    asked = asked or Asked()
    document, rest = _document(text, asked)
    if document is not None and (asked or CONTRACT.issuperset(document)):
        return _of_document(document, rest, asked)
    found = list(_LINE.finditer(text))
    if found and not asked and text[found[-1].end() :].strip():
        found = []
    said = _said(text, asked)
    if not found and OUTCOME not in said:
        return (_of(said), False) if said else (None, False)
    if found:
        word = normalise(found[-1][1].lower() if found[-1][1].isupper() else found[-1][1])
        said[OUTCOME] = Demand(asked.outcomes).spelt(word)
    made = _of(said)
    if made.status == FAIL:
        # The last words of a reply that fails say why.
        words = " ".join((text[: found[-1].start()] if found else text).split())
        made = replace(made, failure_reason=words if len(words) <= 300 else f"…{words[-299:]}")
    return made, True


def _of_document(document: dict[str, Any], rest: str, asked: Asked) -> tuple[NodeOutcome, bool]:
    """Return what a JSON object says, and the lines before it if it does not."""
    judged = any(document.get(key) for key in ("outcome", "status"))
    updates = document.get("context_updates") or {}
    own = {key: document[key] for key in asked.keys if key in document and key not in CONTRACT}
    own.update({key: document[f"context.{key}"] for key in asked.keys if f"context.{key}" in document})
    if own and isinstance(updates, Mapping):
        document = {**document, "context_updates": {**own, **updates}}
    made = from_json(document if judged else {**document, OUTCOME: SUCCESS}, "the reply's status")
    lines = _said(rest, asked)
    status = Demand(asked.outcomes).spelt(made.status) if judged else lines.pop(OUTCOME, made.status)
    judged = judged or status != made.status
    label = made.preferred_label or lines.pop(LABEL, "")
    kind = made.failure_class or lines.pop(_CLASS, "")
    said = {str(key): _spelt(str(key), value, asked) for key, value in made.context_updates.items()}
    more = {key: value for key, value in lines.items() if key not in (OUTCOME, LABEL, _CLASS)}
    return replace(
        made, status=status, preferred_label=_spelt(LABEL, label, asked), failure_class=kind,
        context_updates={**more, **said},
    ), judged  # fmt: skip


def _spelt(key: str, value: Any, asked: Asked) -> Any:
    demand = asked.keys.get(key.removeprefix("context."))
    return demand.spelt(value) if demand is not None and isinstance(value, str) else value


def _said(text: str, asked: Asked) -> dict[str, Any]:
    """Return what lines `KEY: value` say of the keys that are asked for, and the word that the reply ends with."""
    said = {key: demand.spelt(value) for key, demand in asked.keys.items() if (value := _in_line(text, key))}
    open_ = {OUTCOME: Demand(asked.outcomes), **asked.keys}
    last = {key: word for key, demand in open_.items() if key not in said and (word := _last_word(text, demand.words))}
    longest = max(map(len, last.values()), default=0)
    ends = {key: word for key, word in last.items() if len(word) == longest}
    # A word that two keys ask for says neither.
    return {**said, **ends} if len(ends) == 1 else said


def _in_line(text: str, key: str) -> str:
    name = r"(?:preferred[ _](?:next[ _])?)?label" if key == LABEL else rf"(?:context\.)?{re.escape(key)}"
    line = rf"^[ \t>*_#`\"'-]*{name}[*_`\"']*[ \t]*[:=][ \t]*(\S.*?)[ \t,]*$"
    found = re.findall(line, text, re.M | re.I)
    return str(found[-1]).strip(_MARKS) if found else ""


def _last_word(text: str, words: tuple[str, ...]) -> str:
    """Return the word that a reply ends with as an answer: at the begin of a line or sentence, or in capitals."""
    text = text.rstrip(_MARKS + "\n\r)]}")
    last = text[text.rfind("\n") + 1 :].strip(_MARKS + ">#-")
    found = [word for word in words if normal_label(word) == normal_label(last)]
    for word in words:
        before, end = text[: len(text) - len(word)], text[len(text) - len(word) :]
        if word and end.casefold() == word.casefold() and not before[-1:].isalnum():
            shouted = end == word and word.isupper() and len(word) > 1
            if shouted or _ANSWERS.search(before):
                found.append(word)
    return max(found, key=len, default="")


def _document(text: str, asked: Asked) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object at the very end of a reply, fenced or not, if it says an end; and what is before it."""
    block = _BLOCK.search(text)
    if block is not None:
        return _outcome_in(block[1], asked), text[: block.start()]
    text = text.rstrip()
    if text.endswith("}"):
        for start in [found.start() for found in _OPENING.finditer(text)][-_MOST_OPENINGS:]:
            if (found := _outcome_in(text[start:], asked)) is not None:
                return found, text[:start]
    return None, text


def _outcome_in(text: str, asked: Asked) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if any(isinstance(found.get(key), str) for key in ("outcome", "status")):
        return found
    names = {LABEL, "preferred_next_label", "context_updates", *asked.keys, *(f"context.{key}" for key in asked.keys)}
    return found if asked.keys and not names.isdisjoint(found) else None
