"""Formulas that Office edits: presentation MathML, as `publish.mathml` makes it, as Office's own mathematics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element

#: Of Office's mathematics.
MATHS = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
#: Sign of an accent in MathML → the combining one.
_ACCENTS = {"→": "\u20d7", "←": "\u20d6", "^": "\u0302", "˙": "\u0307", "¨": "\u0308", "~": "\u0303"}
_LINE_ABOVE = "‾"
_LARGE = frozenset("∑∫∏")
#: What ends the operand of a sum or an integral.
_RELATIONS = frozenset("=<>≤≥≠≈≡⇒⇔→∝∼≅,;")
#: Widths in em → blanks.
_BLANKS = ((0.9, "\u2003"), (0.3, "\u2004"), (0.25, "\u2005"), (0.0, "\u2009"))
_QUAD = 1.5

#: An element of lxml, which is not imported before it is needed.
Node = Any


class OfficeMaths:
    """Makes elements of Office's mathematics for a Word file."""

    def __init__(self) -> None:
        from lxml import etree

        self._etree = etree
        self._tags: dict[str, Callable[[Sequence[Element]], Node]] = {
            "mfrac": lambda parts: self._made("f", num=parts[0], den=parts[1]),
            "msup": lambda parts: self._made("sSup", e=parts[0], sup=parts[1]),
            "msub": lambda parts: self._made("sSub", e=parts[0], sub=parts[1]),
            "msubsup": lambda parts: self._made("sSubSup", e=parts[0], sub=parts[1], sup=parts[2]),
            "munder": lambda parts: self._made("limLow", e=parts[0], lim=parts[1]),
            "msqrt": lambda parts: self._root(parts, None),
            "mroot": lambda parts: self._root(parts[:1], parts[1]),
            "mover": self._accent,
            "munderover": self._limits,
        }

    def formula(self, content: Element, *, alone: bool = False) -> Node:
        """Return m:oMath, or m:oMathPara of a formula on a line of its own.

        Args:
            content: An mrow.
            alone: It stands on a line of its own.
        """
        made = self._new("oMath", *self._row(list(content)))
        if not alone:
            return made
        properties = self._new("oMathParaPr", self._property("jc", "left"))
        return self._new("oMathPara", properties, made)

    def _new(self, tag: str, *children: Node) -> Node:
        made = self._etree.Element(f"{{{MATHS}}}{tag}", nsmap={"m": MATHS})
        made.extend(children)
        return made

    def _property(self, tag: str, value: str) -> Node:
        made = self._new(tag)
        made.set(f"{{{MATHS}}}val", value)
        return made

    def _made(self, tag: str, **parts: Element) -> Node:
        """Return an element whose parts are filled with rows."""
        return self._new(tag, *(self._new(name, *self._one(part)) for name, part in parts.items()))

    def _one(self, node: Element) -> Iterator[Node]:
        return self._row(list(node)) if node.tag == "mrow" and not _fenced(node) else self._row([node])

    def _row(self, nodes: Sequence[Element]) -> Iterator[Node]:
        """Yield what a row holds; a sum or an integral takes what follows it as its operand."""
        for place, node in enumerate(nodes):
            if _is_large(node):
                rest = nodes[place + 1 :]
                end = next((at for at, one in enumerate(rest) if one.text in _RELATIONS), len(rest))
                yield self._sum(node, rest[:end])
                yield from self._row(rest[end:])
                return
            yield from self._node(node)

    def _node(self, node: Element) -> Iterator[Node]:
        if node.tag in self._tags:
            yield self._tags[node.tag](list(node))
        elif node.tag == "mtable":
            yield self._table(node)
        elif node.tag in ("mrow", "mtd"):
            yield from [self._fence(list(node))] if _fenced(node) else self._row(list(node))
        elif node.tag == "mspace":
            if blank := _blank(node.get("width", "")):
                yield self._run(blank, "p")
        else:
            yield self._leaf(node)

    def _leaf(self, node: Element) -> Node:
        sign = node.text or ""
        if node.tag == "mtext":
            return self._run(sign, "text")
        if node.tag == "mi":
            bold = node.get("mathvariant") == "bold"
            upright = len(sign) > 1 or node.get("mathvariant") == "normal"
            return self._run(sign, "b" if bold else "p" if upright else "")
        return self._run(sign, "" if node.tag == "mo" else "p")

    def _run(self, text: str, style: str) -> Node:
        """Return a run; its style is "" (letters in italics), "p" (upright), "b" (bold) or "text" (words)."""
        made = self._new("r")
        if style:
            kind = self._new("nor") if style == "text" else self._property("sty", style)
            made.append(self._new("rPr", kind))
        made.append(self._font(bold=style == "b"))
        made.append(self._new("t"))
        made[-1].text = text
        if text != text.strip():
            made[-1].set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        return made

    def _font(self, *, bold: bool) -> Node:
        """Return the run's properties: without the font of mathematics some readers set nothing."""
        made = self._etree.Element(f"{{{_WORDS}}}rPr", nsmap={"w": _WORDS})
        fonts = self._etree.SubElement(made, f"{{{_WORDS}}}rFonts")
        fonts.attrib.update({f"{{{_WORDS}}}{use}": "Cambria Math" for use in ("ascii", "hAnsi")})
        if bold:
            self._etree.SubElement(made, f"{{{_WORDS}}}b")
        return made

    def _root(self, content: Sequence[Element], index: Element | None) -> Node:
        properties = self._new("radPr", *([] if index is not None else [self._property("degHide", "1")]))
        degree = self._new("deg", *(self._one(index) if index is not None else ()))
        inside = self._row(content) if len(content) != 1 else self._one(content[0])
        return self._new("rad", properties, degree, self._new("e", *inside))

    def _accent(self, parts: Sequence[Element]) -> Node:
        sign, content = parts[1].text or "", self._new("e", *self._one(parts[0]))
        if sign == _LINE_ABOVE:
            return self._new("bar", self._new("barPr", self._property("pos", "top")), content)
        character = self._property("chr", _ACCENTS.get(sign, sign))
        return self._new("acc", self._new("accPr", character), content)

    def _limits(self, parts: Sequence[Element]) -> Node:
        lower = self._made("limLow", e=parts[0], lim=parts[1])
        return self._new("limUpp", self._new("e", lower), self._new("lim", *self._one(parts[2])))

    def _sum(self, node: Element, operand: Sequence[Element]) -> Node:
        sign, *limits = [node] if node.tag == "mo" else list(node)
        below = limits[0] if limits and node.tag != "msup" else None
        above = limits[-1] if limits and node.tag not in ("msub", "munder") else None
        properties = [self._property("chr", sign.text or "")]
        properties.append(self._property("limLoc", "undOvr" if node.tag.startswith("mu") else "subSup"))
        properties += [self._property("subHide", "1")] if below is None else []
        properties += [self._property("supHide", "1")] if above is None else []
        return self._new(
            "nary",
            self._new("naryPr", *properties),
            self._new("sub", *(self._one(below) if below is not None else ())),
            self._new("sup", *(self._one(above) if above is not None else ())),
            self._new("e", *self._row(operand)),
        )

    def _fence(self, parts: list[Element]) -> Node:
        """Return what stands between two brackets that grow, or beside one."""
        first, last = (_bracket(parts[0]) or ""), (_bracket(parts[-1]) or "")
        inside = parts[bool(first) : len(parts) - bool(last)]
        properties = self._new("dPr", self._property("begChr", first), self._property("endChr", last))
        return self._new("d", properties, self._new("e", *self._row(inside)))

    def _table(self, table: Element) -> Node:
        """Return the rows of a matrix, of cases or of equations below each other."""
        columns = max(len(row) for row in table)
        sides = [*table.get("columnalign", "center").split()] * columns
        made = []
        for row in table:
            cells = [self._new("e", *self._row(list(cell))) for cell in row]
            made.append(self._new("mr", *cells, *(self._new("e") for _ in range(columns - len(row)))))
        kinds = [
            self._new("mc", self._new("mcPr", self._property("count", "1"), self._property("mcJc", side)))
            for side in sides[:columns]
        ]
        properties = self._new("mPr", self._property("plcHide", "1"), self._new("mcs", *kinds))
        return self._new("m", properties, *made)


def _bracket(node: Element) -> str | None:
    """Return the sign of a bracket that grows with its content, else None."""
    return node.text if node.tag == "mo" and node.get("stretchy") != "false" and node.text in _BRACKETS else None


_BRACKETS = frozenset("()[]{}|‖⟨⟩/")


def _fenced(node: Element) -> bool:
    """Return whether a row is one pair of brackets with its content, or one bracket that was paired with nothing."""
    if node.tag != "mrow" or len(node) == 0:
        return False
    first, last = node[0], node[-1]
    both = len(node) > 1 and _bracket(first) is not None and _bracket(last) is not None
    return both or any(_bracket(one) is not None and one.get("fence") == "true" for one in (first, last))


def _is_large(node: Element) -> bool:
    sign = node if node.tag == "mo" else node[0] if len(node) else node
    return node.tag in ("mo", "msub", "msup", "msubsup", "munder", "mover", "munderover") and sign.text in _LARGE


def _blank(width: str) -> str:
    """Return the blank that is nearest to a width such as "0.167em"; none for a negative one."""
    em = float(width.removesuffix("em"))
    if em <= 0:
        return ""
    return "\u2003\u2003" if em > _QUAD else next(blank for least, blank in _BLANKS if em >= least)
