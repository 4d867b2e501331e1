"""DOT text → DotGraph: the pipelines' subset of DOT and all that real files contain. Decides nothing about meaning."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.tokens import BAD, END, NUMBER, STRING, WORD, Tokens, unescaped
from pipeline.dot.values import Value, as_text, bare_value
from pipeline.errors import ConfigError, GraphError
from pipeline.files import read_regular

#: How deep subgraphs may be nested; characters of an id, which also names a folder; bytes of a file.
MAX_DEPTH, MAX_ID, MAX_BYTES = 100, 200, 16 * 1024 * 1024
_KEYWORDS = frozenset({"graph", "node", "edge", "subgraph", "digraph", "strict"})
#: Tokens that may be a name.
_NAMES = frozenset({WORD, STRING, NUMBER})
#: What paths and edge ids are made of, and what no folder's name may hold.
_UNSAFE = re.compile(r"[#/\\\x00-\x1f\x7f]|->")


def read_text(path: str | Path) -> str:
    """Return a DOT file's text.

    Raises:
        ConfigError: There is no such file, or it is no text in UTF-8.
    """
    path = Path(path)
    try:
        data = read_regular(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise ConfigError(
                f"{path} is larger than {MAX_BYTES // 2**20} MiB.", code="file_too_large", hint="Name a DOT file."
            )
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.", code="file_unreadable", hint="Save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "Name a DOT file."
        raise ConfigError(f"{path} cannot be read: {reason}.", code="file_unreadable", hint=hint) from None


def read_graph(path: str | Path) -> DotGraph:
    """Return the graph of a file.

    Raises:
        ConfigError: As `read_text`.
        GraphError: It has no graph; names the file, line and column.
    """
    return parse(read_text(path), str(path))


def parse(text: str, name: str = "<text>") -> DotGraph:
    """Return the graph that a text describes; its errors call the text `name`.

    Raises:
        GraphError: It is no such text; the message begins with NAME:LINE:COLUMN.
    """
    if not isinstance(text, str):
        hint = "Write parse_dot(path.read_text()), or run_dot(path)."
        raise GraphError(f"{text!r} is no text of a graph.", code="invalid_argument", argument="text", hint=hint)
    return _Parser(Tokens(text, name)).graph()


def class_of(label: str) -> str:
    """Return the class that a subgraph's label gives its members: "Loop A" → "loop-a"."""
    return re.sub(r"[^a-z0-9-]", "", re.sub(r"\s+", "-", label.strip().lower()))


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

    def node(self, name: str) -> DotNode:
        classes = list(self.groups)
        if "class" in self.attributes:
            own = as_text(self.attributes["class"]).replace(",", " ").split()
            classes = list(dict.fromkeys([*own, *classes]))
        return DotNode(
            name, self.attributes, tuple(classes), self.line, tuple(self.groups), self.declared, tuple(self.repeated),
            frozenset(self.own),
        )  # fmt: skip


@dataclass(slots=True)
class _Scope:
    """The graph or a subgraph while it is read: its defaults and the nodes it mentions."""

    node: dict[str, Value]
    edge: dict[str, Value]
    attributes: dict[str, Value] = field(default_factory=dict)
    #: Every node mentioned, in order; True: declared here, or named here first.
    members: dict[str, bool] = field(default_factory=dict)


class _Parser:
    """One pass over the tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._kinds = tokens.kinds
        self._texts = tokens.texts
        #: Index of the token to be read next.
        self._at = 0
        self._nodes: dict[str, _Draft] = {}
        self._edges: list[DotEdge] = []
        #: Edges seen between two nodes.
        self._count: dict[str, int] = {}

    def graph(self) -> DotGraph:
        word = self._word()
        if word == "strict":
            raise self._error("'strict' would merge parallel edges.", "Remove it: begin with 'digraph NAME {'.")
        if word == "graph":
            raise self._error("this graph has no directions.", "Write 'digraph' instead of 'graph', and '->'.")
        if word != "digraph":
            what = "there is no graph." if self._kinds[self._at] == END else f"{self._shown()} does not begin a graph."
            raise self._error(what, "Begin with 'digraph NAME {'.")
        self._at += 1
        name = self._name() if self._kinds[self._at] in _NAMES else ""
        self._open("'{' to open the graph", "Write '{' after its name.")
        scope = _Scope({}, {})
        self._body(scope, self._at - 1, 0)
        if self._kinds[self._at] == ";":
            self._at += 1
        if self._kinds[self._at] != END:
            if self._word() in ("digraph", "graph", "strict"):
                raise self._error("a second graph begins here.", "Keep one graph in a file.")
            raise self._error(f"{self._shown()} after the graph's end.", "Remove it, or a '}' too many.")
        nodes = {name: draft.node(name) for name, draft in self._nodes.items()}
        return DotGraph(name, scope.attributes, nodes, tuple(self._edges), self._tokens.text)

    def _open(self, wanted: str, hint: str) -> None:
        if self._kinds[self._at] != "{":
            raise self._error(f"expected {wanted}, found {self._shown()}.", hint)
        self._at += 1

    # Statements

    def _body(self, scope: _Scope, opened: int, depth: int) -> None:
        """Read the statements up to and with the closing brace; the opening one is read."""
        if depth > MAX_DEPTH:
            raise self._tokens.error(opened, f"subgraphs are nested more than {MAX_DEPTH} deep.")
        kinds = self._kinds
        while (kind := kinds[self._at]) != "}":
            if kind == ";":
                self._at += 1
            elif kind in _NAMES or kind == "{":
                self._statement(scope, depth)
            elif kind == END:
                line = self._tokens.line(opened)
                raise self._error(f"the '{{' of line {line} is not closed.", "Add '}' where it ends.")
            elif kind == "[":
                raise self._error("'[' belongs to no node or edge.", "Name one before it: NAME [ … ].")
            elif kind == "->":
                raise self._error("'->' has no source.", "Name the node that the edge leaves.")
            else:
                raise self._error(f"{self._shown()} does not begin a statement.", "Write a node, an edge or key=value.")
        self._at += 1

    def _statement(self, scope: _Scope, depth: int) -> None:
        at, kinds = self._at, self._kinds
        after = kinds[at + 1]
        if kinds[at] == WORD and (word := self._texts[at].lower()) in _KEYWORDS and word != "subgraph":
            if after == "[" and word in ("graph", "node", "edge"):
                self._at += 1
                defaults = {"graph": scope.attributes, "node": scope.node, "edge": scope.edge}[word]
                defaults.update(self._attributes())
                return
            self._refuse_keyword()
        if after == "=" and kinds[at] != "{":
            if kinds[at - 1] in _NAMES and self._tokens.same_line(at):
                raise self._error(
                    f"{self._shown()} is outside of brackets.", "Put the attributes of a node or edge in [ ]."
                )
            key = self._name()
            self._at += 1
            scope.attributes[key] = self._value(key)
            return
        ends = self._end(scope, depth)
        if kinds[self._at] in ("->", "--"):
            self._edge(scope, ends, depth, self._tokens.line(at))
        elif isinstance(ends, str):
            self._node(scope, ends, self._tokens.line(at))

    def _refuse_keyword(self) -> None:
        word = self._texts[self._at]
        if self._kinds[self._at] == WORD and word in _KEYWORDS:
            raise self._error(f"'{word}' is a keyword.", f'Rename it, or write it in quotes: "{word}".')

    def _node(self, scope: _Scope, name: str, line: int) -> None:
        described = self._kinds[self._at] == "["
        explicit = self._attributes()
        draft = self._nodes.get(name)
        if draft is None:
            draft = self._nodes[name] = _Draft(line, {**scope.node, **explicit}, True, described)
        elif draft.described:
            draft.attributes.update(explicit)
            if described:
                draft.repeated.append(line)
        else:
            # So far it was only named, by edges or in a list; this is its declaration.
            draft.attributes.update({**scope.node, **explicit} if described or not draft.declared else {})
            draft.declared, draft.described = True, described
        draft.own.update(explicit)
        scope.members[name] = True

    def _edge(self, scope: _Scope, first: str | list[str], depth: int, line: int) -> None:
        ends = [[first] if isinstance(first, str) else first]
        while self._kinds[self._at] == "->":
            self._at += 1
            if self._kinds[self._at] not in _NAMES and self._kinds[self._at] != "{":
                raise self._error(
                    f"expected a node after '->', found {self._shown()}.", "Name the node that the edge leads to."
                )
            end = self._end(scope, depth)
            ends.append([end] if isinstance(end, str) else end)
        if self._kinds[self._at] == "--":
            raise self._error("'--' has no direction.", "Write '->'.")
        attributes = {**scope.edge, **self._attributes()}
        for name in (name for group in ends for name in group):
            if name not in self._nodes:
                self._nodes[name] = _Draft(line, dict(scope.node))
                scope.members[name] = True
            else:
                scope.members.setdefault(name, False)
        for sources, targets in pairwise(ends):
            for source in sources:
                for target in targets:
                    name = f"{source}->{target}"
                    number = self._count[name] = self._count.get(name, 0) + 1
                    edge_id = name if number == 1 else f"{name}#{number}"
                    self._edges.append(DotEdge(source, target, dict(attributes), edge_id, line))

    def _end(self, scope: _Scope, depth: int) -> str | list[str]:
        """Return what may be the end of an edge: a node's id, or the members of a subgraph."""
        if self._kinds[self._at] == "{" or self._word() == "subgraph":
            return self._subgraph(scope, depth)
        self._refuse_keyword()
        at = self._at
        name = self._name()
        if self._kinds[at] != STRING:
            name = name.partition(":")[0]
        while self._kinds[self._at] == ":":
            self._at += 1
            if self._kinds[self._at] not in _NAMES:
                raise self._error(
                    f"expected a port after ':', found {self._shown()}.", "Name the port, or remove the ':'."
                )
            self._at += 1
        if name not in self._nodes:
            self._check_id(name, at)
        return name

    def _subgraph(self, outer: _Scope, depth: int) -> list[str]:
        if self._kinds[self._at] != "{":
            self._at += 1
            if self._kinds[self._at] in _NAMES:
                self._at += 1
        self._open("'{' to open the subgraph", "Write '{'.")
        scope = _Scope(dict(outer.node), dict(outer.edge))
        self._body(scope, self._at - 1, depth + 1)
        group = class_of(as_text(scope.attributes.get("label", "")))
        for name, own in scope.members.items():
            if own and group:
                self._nodes[name].groups.append(group)
            outer.members[name] = own or outer.members.get(name, False)
        return list(scope.members)

    def _check_id(self, name: str, at: int) -> None:
        error = self._tokens.error
        if not name.strip():
            raise error(at, "a node's id is empty.", "Give it a name.")
        if name in (".", ".."):
            raise error(at, f"{name!r} is not a node's id.", "Give it a name.")
        if found := _UNSAFE.search(name):
            what = f"{self._tokens.shown(at)}: a node's id cannot contain {found[0]!r}."
            raise error(at, what, "Use it in the label instead.")
        if len(name) > MAX_ID:
            raise error(at, f"a node's id has more than {MAX_ID} characters.", "Use a label instead.")

    # Attributes

    def _attributes(self) -> dict[str, Value]:
        """Read the lists [key=value, …] at this place; commas, semicolons or space between."""
        found: dict[str, Value] = {}
        kinds = self._kinds
        while kinds[self._at] == "[":
            opened = self._at
            self._at += 1
            while (kind := kinds[self._at]) != "]":
                if kind == "," or kind == ";":
                    self._at += 1
                    continue
                if kind not in _NAMES or kinds[self._at + 1] != "=":
                    raise self._list_error(opened)
                key = self._name()
                self._at += 1
                found[key] = self._value(key)
            self._at += 1
        return found

    def _list_error(self, opened: int) -> GraphError:
        """Return what is wrong with the attribute list that is read."""
        where = f"in the attributes that begin on line {self._tokens.line(opened)}"
        if self._kinds[self._at] not in _NAMES:
            return self._error(f"{self._shown()} is {where}.", "Close them with ']'.")
        after = self._kinds[self._at + 1]
        if after == BAD:
            return self._tokens.error(self._at + 1, "")
        hint = 'Write key=value; put a value of several words in quotes: key="two words".'
        if after in ("[", "->"):
            hint = "Close the attributes before it with ']'."
        return self._error(f"{self._shown()} {where} has no '='.", hint)

    def _value(self, key: str) -> Value:
        at = self._at
        kind = self._kinds[at]
        if kind == STRING:
            text = self._name()
            while self._kinds[self._at] == "+":
                self._at += 1
                if self._kinds[self._at] != STRING:
                    raise self._error(
                        f"expected a string after '+', found {self._shown()}.", "Only strings are joined."
                    )
                text += self._name()
            return text
        if kind not in _NAMES:
            raise self._error(f"{key!r} has no value: found {self._shown()}.", f'Write {key}="…".')
        self._at += 1
        return bare_value(self._texts[at])

    # Tokens

    def _name(self) -> str:
        at = self._at
        self._at += 1
        return unescaped(self._texts[at]) if self._kinds[at] == STRING else self._texts[at]

    def _word(self) -> str:
        """Return the word at this place, in lower case; "" if it is none."""
        return self._texts[self._at].lower() if self._kinds[self._at] == WORD else ""

    def _shown(self) -> str:
        return self._tokens.shown(self._at)

    def _error(self, what: str, hint: str = "") -> GraphError:
        return self._tokens.error(self._at, what, hint)
