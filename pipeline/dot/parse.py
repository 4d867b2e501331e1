"""DOT text → DotGraph: the pipelines' subset of DOT and all that real files contain. Decides nothing about meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from pipeline.dot.cursor import NAMES, Cursor
from pipeline.dot.lexer import END, STRING, WORD, Tokens
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.values import Value, as_text
from pipeline.errors import GraphError

#: Subgraphs may stand this deep in each other.
MAX_DEPTH = 100
_KEYWORDS = frozenset({"graph", "node", "edge", "subgraph", "digraph", "strict"})


def parse(text: str, name: str = "<text>") -> DotGraph:
    """The graph that a text describes; `name` stands in its errors.

    Raises:
        GraphError: It is no such text; the message begins with NAME:LINE:COLUMN.
    """
    return _Parser(Tokens(text, name)).graph()


@dataclass(slots=True)
class _Draft:
    """A node while more about it may follow."""

    line: int
    attributes: dict[str, Value]
    #: A statement names it; one with attributes does.
    declared: bool = False
    described: bool = False
    repeated: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Scope:
    """The graph or a subgraph while it is read: its defaults and whom it mentions."""

    node: dict[str, Value]
    edge: dict[str, Value]
    attributes: dict[str, Value] = field(default_factory=dict)
    #: Everybody mentioned, in order; True: declared here, or named here first.
    members: dict[str, bool] = field(default_factory=dict)


class _Parser(Cursor):
    """One pass over the tokens."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens)
        self._nodes: dict[str, _Draft] = {}
        #: (source, target, attributes, line)
        self._edges: list[tuple[str, str, dict[str, Value], int]] = []

    def graph(self) -> DotGraph:
        name = self._head()
        scope = _Scope({}, {})
        self._body(scope, self._at - 1, 0)
        if self._kinds[self._at] == ";":
            self._at += 1
        if self._kinds[self._at] != END:
            if self._word() in ("digraph", "graph", "strict"):
                raise self._error("a second graph begins here.", "Keep one graph in a file.")
            raise self._error(f"{self._shown()} stands after the graph's end.", "Remove it, or a '}' too many.")
        return DotGraph(name, scope.attributes, self._frozen_nodes(), self._frozen_edges(), self._tokens.text)

    def _head(self) -> str:
        word = self._word()
        if word == "strict":
            raise self._error("'strict' would merge parallel edges.", "Remove it: begin with 'digraph NAME {'.")
        if word == "graph":
            raise self._error("this graph has no directions.", "Write 'digraph' instead of 'graph', and '->'.")
        if word != "digraph":
            what = "there is no graph." if self._kinds[self._at] == END else f"{self._shown()} begins no graph."
            raise self._error(what, "Begin with 'digraph NAME {'.")
        self._at += 1
        name = self._name() if self._kinds[self._at] in NAMES else ""
        if self._kinds[self._at] != "{":
            raise self._error(f"{self._shown()} stands where the graph should open.", "Write '{' after its name.")
        self._at += 1
        return name

    # Statements

    def _body(self, scope: _Scope, opened: int, depth: int) -> None:
        """The statements up to and with the closing brace; the opening one is read."""
        if depth > MAX_DEPTH:
            raise self._tokens.error(opened, f"subgraphs stand more than {MAX_DEPTH} deep in each other.")
        kinds = self._kinds
        while True:
            kind = kinds[self._at]
            if kind == "}":
                self._at += 1
                return
            if kind == ";":
                self._at += 1
            elif kind in NAMES or kind == "{":
                self._statement(scope, depth)
            elif kind == END:
                line = self._tokens.line(opened)
                raise self._error(f"the '{{' of line {line} is not closed.", "Add '}' where it ends.")
            else:
                raise self._unexpected(kind)

    def _statement(self, scope: _Scope, depth: int) -> None:
        at, kinds = self._at, self._kinds
        after = kinds[at + 1]
        if kinds[at] == WORD and (word := self._texts[at].lower()) in _KEYWORDS and word != "subgraph":
            if after == "[" and word in ("graph", "node", "edge"):
                self._at += 1
                defaults = {"graph": scope.attributes, "node": scope.node, "edge": scope.edge}[word]
                defaults.update(self._attributes())
                return
            if word == self._texts[at]:
                raise self._error(f"'{word}' is a keyword.", f'Rename it, or write it in quotes: "{word}".')
        if after == "=" and kinds[at] != "{":
            self._assignment(scope)
            return
        ends = self._end(scope, depth)
        if kinds[self._at] == "->":
            self._edge(scope, ends, depth, self._tokens.line(at))
        elif kinds[self._at] == "--":
            raise self._error("'--' has no direction.", "Write '->'.")
        elif isinstance(ends, str):
            self._node(scope, ends, self._tokens.line(at))

    def _assignment(self, scope: _Scope) -> None:
        at = self._at
        if self._kinds[at - 1] in NAMES and self._tokens.same_line(at):
            raise self._error(
                f"{self._shown()} stands outside of brackets.", "Attributes of a node or edge stand in [ ]."
            )
        key = self._name()
        self._at += 1
        scope.attributes[key] = self._value(key)

    def _node(self, scope: _Scope, name: str, line: int) -> None:
        described = self._kinds[self._at] == "["
        explicit = self._attributes()
        draft = self._nodes.get(name)
        if draft is None:
            self._nodes[name] = _Draft(line, {**scope.node, **explicit}, True, described)
        elif draft.described:
            draft.attributes.update(explicit)
            if described:
                draft.repeated.append(line)
        else:
            # So far it was only named, by edges or in a list; this is its declaration.
            draft.attributes.update({**scope.node, **explicit} if described or not draft.declared else {})
            draft.declared, draft.described = True, described
        self._nodes[name].own.update(explicit)
        scope.members[name] = True

    def _edge(self, scope: _Scope, first: str | list[str], depth: int, line: int) -> None:
        ends = [[first] if isinstance(first, str) else first]
        while self._kinds[self._at] == "->":
            self._at += 1
            if self._kinds[self._at] not in NAMES and self._kinds[self._at] != "{":
                raise self._error(f"after '->' stands {self._shown()}.", "Name the node that the edge leads to.")
            end = self._end(scope, depth)
            ends.append([end] if isinstance(end, str) else end)
        if self._kinds[self._at] == "--":
            raise self._error("'--' has no direction.", "Write '->'.")
        attributes = {**scope.edge, **self._attributes()}
        for group in ends:
            for name in group:
                if name not in self._nodes:
                    self._nodes[name] = _Draft(line, dict(scope.node))
                    scope.members[name] = True
                else:
                    scope.members.setdefault(name, False)
        for sources, targets in pairwise(ends):
            self._edges += [(source, target, dict(attributes), line) for source in sources for target in targets]

    def _end(self, scope: _Scope, depth: int) -> str | list[str]:
        """What may be the end of an edge: a node's id, or the members of a subgraph."""
        if self._kinds[self._at] == "{" or self._word() == "subgraph":
            return self._subgraph(scope, depth)
        at = self._at
        if self._kinds[at] == WORD and self._texts[at] in _KEYWORDS:
            word = self._texts[at]
            raise self._error(f"'{word}' is a keyword.", f'Rename it, or write it in quotes: "{word}".')
        port = self._kinds[at] != STRING and ":" in self._texts[at]
        name = self._texts[at].partition(":")[0] if port else self._name()
        self._at = at + 1 if port else self._at
        while self._kinds[self._at] == ":":
            self._at += 1
            if self._kinds[self._at] not in NAMES:
                raise self._error(f"after ':' stands {self._shown()}.", "Name the port, or remove the ':'.")
            self._at += 1
        if name not in self._nodes:
            self._check_id(name, at)
        return name

    def _subgraph(self, outer: _Scope, depth: int) -> list[str]:
        if self._kinds[self._at] != "{":
            self._at += 1
            if self._kinds[self._at] in NAMES:
                self._name()
            if self._kinds[self._at] != "{":
                raise self._error(f"{self._shown()} stands where the subgraph should open.", "Write '{'.")
        self._at += 1
        scope = _Scope(dict(outer.node), dict(outer.edge))
        self._body(scope, self._at - 1, depth + 1)
        group = class_of(as_text(scope.attributes.get("label", "")))
        for name, own in scope.members.items():
            if own and group:
                self._nodes[name].groups.append(group)
            outer.members[name] = own or outer.members.get(name, False)
        return list(scope.members)

    def _unexpected(self, kind: str) -> GraphError:
        if kind == "[":
            return self._error("'[' belongs to no node or edge.", "Name one before it: NAME [ … ].")
        if kind == "->":
            return self._error("'->' leads from nowhere.", "Name the node that the edge leaves.")
        return self._error(f"{self._shown()} begins no statement.", "A node, an edge or key=value may stand here.")

    # Results

    def _frozen_nodes(self) -> dict[str, DotNode]:
        nodes = {}
        for name, draft in self._nodes.items():
            classes: tuple[str, ...] = tuple(draft.groups)
            if "class" in draft.attributes:
                own = as_text(draft.attributes["class"]).replace(",", " ").split()
                classes = tuple(dict.fromkeys([*own, *classes]))
            nodes[name] = DotNode(
                name, draft.attributes, classes, draft.line, tuple(draft.groups), draft.declared, tuple(draft.repeated),
                frozenset(draft.own),
            )  # fmt: skip
        return nodes

    def _frozen_edges(self) -> tuple[DotEdge, ...]:
        count: dict[str, int] = {}
        edges = []
        for source, target, attributes, line in self._edges:
            name = f"{source}->{target}"
            number = count[name] = count.get(name, 0) + 1
            edges.append(DotEdge(source, target, attributes, name if number == 1 else f"{name}#{number}", line))
        return tuple(edges)


def class_of(label: str) -> str:
    """The class that a subgraph's label gives its members: "Loop A" → "loop-a"."""
    return re.sub(r"[^a-z0-9-]", "", re.sub(r"\s+", "-", label.strip().lower()))
