"""Model stylesheets: rules that give nodes their model, provider and effort by shape, class or id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.dot.model import DotGraph, DotNode
from pipeline.dot.tokens import unescaped
from pipeline.dot.values import Value, as_text
from pipeline.errors import GraphError

#: What `apply` fills in, from the graph's own attributes last of all.
_FILLED = ("llm_model", "llm_provider", "reasoning_effort")
#: What a rule may set, by each of its spellings.
PROPERTIES: Mapping[str, str] = {
    **{name: name for name in (*_FILLED, "max_tokens", "temperature", "backend")},
    "model": "llm_model", "provider": "llm_provider", "reasoning": "reasoning_effort",
}  # fmt: skip

_ANY, _SHAPE, _CLASS, _ID = range(4)
_SPACE = re.compile(r"(?:\s|/\*.*?\*/)*+", re.DOTALL)
_SELECTOR = re.compile(r"\*|[.#]?[^\W\d][\w-]*|[.#][\w-]+|\#\"[^\"]+\"")
_PROPERTY = re.compile(r"[^\W\d][\w-]*")
_DECLARED = re.compile(r'"(?P<quoted>[^"\\]*+(?:\\.[^"\\]*+)*+)"|(?P<bare>[^\s;{}"]+)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector and what it sets."""

    #: As written: "*", "box", ".code", "#plan".
    selector: str
    #: Property → value, as written.
    declared: Mapping[str, str]

    @property
    def weight(self) -> int:
        """Return how particular the selector is: * 0, shape 1, class 2, id 3."""
        return {"*": _ANY, ".": _CLASS, "#": _ID}.get(self.selector[0], _SHAPE)

    def fits(self, node: DotNode) -> bool:
        name = self.selector[1:].strip('"')
        if self.weight == _SHAPE:
            return node.shape == self.selector
        if self.weight == _CLASS:
            return name in node.classes
        return self.weight == _ANY or node.id == name


def parse_stylesheet(text: str) -> list[Rule]:
    """Return the rules that a text says: `SELECTOR { property: value; … }`, again and again.

    Raises:
        GraphError: It says none; names the line within it.
    """
    rules: list[Rule] = []
    at = _skip(text, 0)
    while at < len(text):
        selectors, at = _selectors(text, at)
        declared, at = _block(text, at)
        rules += [Rule(selector, declared) for selector in selectors]
        at = _skip(text, at)
    return rules


def apply(graph: DotGraph) -> DotGraph:
    """Return the graph with its nodes' model, provider and effort filled in.

    A node's own attribute wins, then the stylesheet, then the graph's attribute of that name.

    Raises:
        GraphError: The stylesheet cannot be read.
    """
    # The more particular rule wins, of equals the later.
    rules = sorted(parse_stylesheet(graph.text("model_stylesheet")), key=lambda rule: rule.weight)
    defaults = {name: graph.attributes[name] for name in _FILLED if name in graph.attributes}
    nodes = {name: _styled(node, rules, defaults) for name, node in graph.nodes.items()}
    return replace(graph, nodes=nodes)


def _styled(node: DotNode, rules: Sequence[Rule], defaults: Mapping[str, Value]) -> DotNode:
    own = dict(node.attributes)
    for name, meant in PROPERTIES.items():
        if name in own and not as_text(own.get(meant, "")):
            own[meant] = own[name]
    said = {PROPERTIES[name]: value for rule in rules if rule.fits(node) for name, value in rule.declared.items()
            if name in PROPERTIES}  # fmt: skip
    filled = {**defaults, **said, **{name: value for name, value in own.items() if as_text(value)}}
    return node if filled == node.attributes else replace(node, attributes={**own, **filled})


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _selectors(text: str, at: int) -> tuple[list[str], int]:
    names: list[str] = []
    while True:
        found = _SELECTOR.match(text, at)
        if found is None:
            raise _error(text, at, "expected a selector.", "Selectors are *, SHAPE, .CLASS and #ID.")
        names.append(found[0])
        at = _skip(text, found.end())
        if text[at : at + 1] == "{":
            return names, _skip(text, at + 1)
        if text[at : at + 1] != ",":
            raise _error(text, at, "expected '{'.", "Write SELECTOR { property: value; }.")
        at = _skip(text, at + 1)


def _block(text: str, at: int) -> tuple[dict[str, str], int]:
    declared: dict[str, str] = {}
    while text[at : at + 1] != "}":
        if text[at : at + 1] == ";":
            at = _skip(text, at + 1)
            continue
        name = _PROPERTY.match(text, at)
        if name is None:
            raise _error(text, at, "expected a property.", "Write property: value; and close with '}'.")
        at = _skip(text, name.end())
        if text[at : at + 1] not in (":", "="):
            raise _error(text, at, f"expected ':' after {name[0]!r}.", f"Write {name[0]}: value;")
        at = _skip(text, at + 1)
        value = _DECLARED.match(text, at)
        if value is None:
            raise _error(text, at, f"{name[0]!r} has no value.", f"Write {name[0]}: value;")
        declared[name[0]] = unescaped(value["quoted"]) if value["bare"] is None else value["bare"]
        at = _skip(text, value.end())
        if text[at : at + 1] not in (";", "}"):
            fix = "End each property with ';'; put a value of several words in quotes."
            raise _error(text, at, f"expected ';' after the value of {name[0]!r}.", fix)
    return declared, at + 1


def _error(text: str, at: int, what: str, hint: str) -> GraphError:
    line = text.count("\n", 0, at) + 1
    shown = repr(text[at : at + 20]) if at < len(text) else "the end"
    message = f"model_stylesheet, line {line}, at {shown}: {what}"
    return GraphError(message, code="stylesheet_syntax", hint=hint, line=line)
