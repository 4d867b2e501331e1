"""Puts the pieces of one side of a statement together to a tree: recursive descent, within bounds."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.maths.pieces import Lexeme
from pipeline.maths.trees import MathNode, NotReadError, number

#: How deep brackets may be nested.
MOST_DEPTH = 30
_MULTIPLES = {"thousand": "1000", "million": "1000000", "billion": "1000000000"}


class Parser:
    """Recursive descent over the tokens of one side."""

    def __init__(self, tokens: list[Lexeme]) -> None:
        self._tokens = [*tokens, Lexeme("end", "")]
        self._at = self._depth = 0

    def whole(self) -> MathNode:
        node = self._sum()
        if self._peek().kind != "end":
            raise NotReadError(f"{self._peek().text!r} is left over")
        return node

    def _peek(self, ahead: int = 0) -> Lexeme:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _is(self, *texts: str) -> bool:
        token = self._peek()
        return token.text in texts and token.kind in ("sign", "command")

    def _take(self, want: str = "") -> Lexeme:
        token = self._peek()
        if token.kind == "end" or (want and token.text != want):
            raise NotReadError(f"expected {want or 'more'}, found {token.text or 'the end'}")
        self._at += 1
        return token

    def _closed(self, closing: str) -> MathNode:
        node = self._sum()
        self._take(closing)
        return node

    def _sum(self) -> MathNode:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise NotReadError("too deep")
        terms = [self._signed(self._product)]
        while self._is("+", "-"):
            minus = self._take().text == "-"
            term = self._signed(self._product)
            terms.append(MathNode("minus", (term,)) if minus else term)
        self._depth -= 1
        return MathNode("sum", tuple(terms)) if len(terms) > 1 else terms[0]

    def _signed(self, follows: Callable[[], MathNode]) -> MathNode:
        """Return what follows signs: a product, or one factor."""
        minus = False
        while self._is("+", "-"):
            minus ^= self._take().text == "-"
        node = follows()
        return MathNode("minus", (node,)) if minus else node

    def _product(self) -> MathNode:
        factors = [self._factor()]
        while True:
            if self._is("*"):
                self._take()
                factors.append(self._signed(self._factor))
            elif self._is("/", ":"):
                self._take()
                factors = [MathNode("quotient", (_joined(factors), self._signed(self._factor)))]
            elif self._begins():
                if self._peek().kind == "number":
                    raise NotReadError("two numbers side by side")
                factors.append(self._factor())
            else:
                return _joined(factors)

    def _begins(self) -> bool:
        token = self._peek()
        if token.kind in ("number", "letter", "pi", "function"):
            return True
        return self._is("(", "[", "{", r"\frac", r"\sqrt", "√", r"\abs", r"\begin", r"\binom")

    def _factor(self) -> MathNode:
        node = self._atom()
        while True:
            if self._peek().kind == "unit" or self._is("%", "°"):
                unit = self._take().text
                percent = unit in ("%", "per cent", "percent")
                node = MathNode("percent", (node,)) if percent else MathNode("unit", (node,), unit)
            elif self._is("^"):
                self._take()
                node = self._powered(node)
            elif self._is("million", "thousand", "billion"):
                node = MathNode("product", (node, number(_MULTIPLES[self._take().text])))
            else:
                return node

    def _powered(self, base: MathNode) -> MathNode:
        if self._is("°"):
            self._take()
            return MathNode("unit", (base,), "°")
        if self._is("{") and self._peek(1).text == "°" and self._peek(2).text == "}":
            self._at += 3
            return MathNode("unit", (base,), "°")
        node = MathNode("power", (base, self._argument()))
        if self._is("^"):
            raise NotReadError("a second power")
        return node

    def _argument(self) -> MathNode:
        """Return a group in braces, or one thing with its sign."""
        if self._is("{"):
            self._take()
            return self._closed("}")
        if self._is("-", "+"):
            minus = self._take().text == "-"
            return MathNode("minus", (self._argument(),)) if minus else self._argument()
        return self._atom()

    def _atom(self) -> MathNode:
        self._depth += 1
        if self._depth > 2 * MOST_DEPTH:
            raise NotReadError("too deep")
        node = self._unbounded_atom(self._take())
        self._depth -= 1
        return node

    def _unbounded_atom(self, token: Lexeme) -> MathNode:
        if token.kind == "number":
            return self._number(token)
        if token.kind == "letter":
            return self._letter(token)
        if token.kind == "pi":
            return MathNode("pi")
        if token.kind == "function":
            return self._function(token.text)
        if token.kind == "sign" and token.text == "£":
            return MathNode("unit", (self._factor(),), "£")
        if token.kind == "sign" and token.text == "|":
            return MathNode("abs", (self._closed("|"),))
        if token.kind == "sign" and token.text in "([{":
            return self._bracket({"(": ")", "[": "]", "{": "}"}[token.text])
        if token.kind == "command" or token.text == "√":
            return self._command(token.text)
        raise NotReadError(f"{token.text!r} is not a value")

    def _number(self, token: Lexeme) -> MathNode:
        text = token.text
        if self._peek().kind == "recurring" and "." in text:
            return _recurring(text, self._take().text)
        if "." in text:
            if text.endswith("."):
                raise NotReadError("a number without its end")
            return number(text)
        mark = self._at
        if self._peek().text == r"\frac":
            self._take()
            top, low = self._argument(), self._argument()
            if top.kind == low.kind == "number" and "." not in top.text + low.text and low.text != "0":
                return MathNode("mixed", (number(text), top, low))
            self._at = mark
        first, slash, second = self._peek(), self._peek(1), self._peek(2)
        if (
            first.kind == second.kind == "number"
            and slash.text == "/"
            and first.text.isdigit()
            and second.text.isdigit()
        ):
            self._at += 3
            return MathNode("mixed", (number(text), number(first.text), number(second.text)))
        return number(text)

    def _letter(self, token: Lexeme) -> MathNode:
        name = token.text
        if self._is("_"):
            self._take()
            if self._is("{"):
                self._take()
                while not self._is("}"):
                    name += self._take().text
                self._take()
            else:
                name += self._take().text
        if self._is("("):
            name = self._called(name)
        return MathNode("letter", (), name)

    def _called(self, name: str) -> str:
        """Return f(3) as one name; a letter before the coordinates of a point is its label and is not read."""
        depth, ahead, inner = 0, 0, ""
        while True:
            token = self._peek(ahead)
            if token.kind == "end":
                raise NotReadError("a bracket is never closed")
            depth += (token.text == "(") - (token.text == ")")
            ahead += 1
            inner += token.text
            if depth == 0:
                break
        alone = self._at == 1 and self._peek(ahead).kind == "end"
        if name in ("f", "g") or (alone and name in ("h", "P", "F")):
            self._at += ahead
            return name + inner
        if "," in inner:
            raise NotReadError("a point with a label")
        return name

    def _function(self, name: str) -> MathNode:
        power: MathNode | None = None
        if self._is("^"):
            self._take()
            power = self._argument()
            if power.value == -1:
                name, power = f"a{name}", None
        node = MathNode("function", (self._function_argument(),), name)
        return MathNode("power", (node, power)) if power else node

    def _function_argument(self) -> MathNode:
        """Return a bracket, or the numbers and letters up to the next sign: sin 2x is the sine of 2x."""
        if self._is("(", "{", "[", r"\frac", r"\sqrt"):
            node = self._atom()
            while self._is("°") or (self._is("^") and self._degrees_follow()):
                self._take()
                node = self._powered(node) if self._tokens[self._at - 1].text == "^" else node
            return node
        factors = [self._signed(self._factor)]
        while self._peek().kind in ("letter", "pi"):
            factors.append(self._factor())
        return _joined(factors)

    def _degrees_follow(self) -> bool:
        return self._peek(1).text == "°" or (self._peek(1).text == "{" and self._peek(2).text == "°")

    def _bracket(self, closing: str) -> MathNode:
        parts = [self._sum()]
        while self._is(","):
            self._take()
            parts.append(self._sum())
        self._take(closing)
        if len(parts) == 1:
            return parts[0]
        if closing != ")" or len(parts) > 3:
            raise NotReadError("a list")
        return MathNode("vector", tuple(parts))

    def _command(self, name: str) -> MathNode:
        if name == r"\frac":
            return MathNode("quotient", (self._argument(), self._argument()))
        if name == r"\binom":
            return MathNode("vector", (self._argument(), self._argument()))
        if name == r"\abs":
            return MathNode("abs", (self._argument(),))
        if name == r"\begin":
            parts = [self._sum()]
            while not self._is(r"\end"):
                self._take(r"\\")
                if not self._is(r"\end"):
                    parts.append(self._sum())
            self._take()
            return MathNode("vector", tuple(parts))
        index = number("2")
        if name == r"\sqrt" and self._is("["):
            self._take()
            index = self._closed("]")
        return MathNode("root", (self._argument(), index))


def _joined(factors: list[MathNode]) -> MathNode:
    return MathNode("product", tuple(factors)) if len(factors) > 1 else factors[0]


def _recurring(text: str, period: str) -> MathNode:
    """Return 0.1 with the period 6 recurring as 0.1 + 6/90."""
    scale = 10 ** len(text.partition(".")[2])
    low = scale * (10 ** len(period) - 1)
    return MathNode("sum", (number(text), MathNode("quotient", (number(period), number(str(low))))))
