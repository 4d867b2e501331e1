r"""The TeX subset becomes MathML, or says where it is wrong."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.publish import mathml
from pipeline.publish.tex import MAX_LENGTH, TexError


def row(tex: str) -> str:
    made = mathml.parse(tex)
    found = re.search(r"<semantics><mrow>(.*)</mrow><annotation", made, re.DOTALL)
    assert found
    return found[1]


def test_parse_sets_the_parts_of_school_mathematics() -> None:
    for tex, wanted in (
        ("x^2", "<msup><mi>x</mi><mn>2</mn></msup>"),
        ("x_1^{10}", "<msubsup><mi>x</mi><mn>1</mn><mrow><mn>10</mn></mrow></msubsup>"),
        ("-4", '<mo form="prefix">−</mo><mn>4</mn>'),
        # What cannot stand before a number: a degree, a per cent, the arrow over a vector.
        ("x°-4", '<mi>x</mi><mo lspace="0" rspace="0">°</mo><mo>−</mo><mn>4</mn>'),
        ("n!-4", "<mi>n</mi><mo>!</mo><mo>−</mo><mn>4</mn>"),
        ("a=-4-b", '<mi>a</mi><mo>=</mo><mo form="prefix">−</mo><mn>4</mn><mo>−</mo><mi>b</mi>'),
        (
            "(-5,-6)",
            '<mrow><mo>(</mo><mo form="prefix">−</mo><mn>5</mn><mo separator="true">,</mo>'
            '<mo form="prefix">−</mo><mn>6</mn><mo>)</mo></mrow>',
        ),
        (r"\sqrt{3}", "<msqrt><mrow><mn>3</mn></mrow></msqrt>"),
        (r"\sqrt[3]{8}", "<mroot><mrow><mn>8</mn></mrow><mrow><mn>3</mn></mrow></mroot>"),
        (r"30^\circ", '<mrow><mn>30</mn><mo lspace="0" rspace="0">°</mo></mrow>'),
        (r"30^{\circ}", '<mrow><mn>30</mn><mo lspace="0" rspace="0">°</mo></mrow>'),
        ("1,250.50", "<mn>1,250.50</mn>"),
        ("1{,}250", "<mn>1,250</mn>"),
        (r"5\,\mathrm{cm}", '<mn>5</mn><mspace width="0.167em"></mspace><mi>cm</mi>'),
        (r"\mathrm{V}", '<mi mathvariant="normal">V</mi>'),
        (r"\text{ if }x", "<mtext>\u00a0if\u00a0</mtext><mi>x</mi>"),
        (r"\text{5\% \& more}", "<mtext>5%\u00a0&amp;\u00a0more</mtext>"),
        (r"a<b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        ("f''(x)", "<msup><mi>f</mi><mo>′′</mo></msup><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow>"),
        (
            r"2\sin x",
            '<mn>2</mn><mspace width="0.167em"></mspace><mi>sin</mi><mspace width="0.167em"></mspace><mi>x</mi>',
        ),
        (r"\sin(x)", "<mi>sin</mi><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow>"),
        ("(x+2)^2", "<msup><mrow><mo>(</mo><mi>x</mi><mo>+</mo><mn>2</mn><mo>)</mo></mrow><mn>2</mn></msup>"),
    ):
        assert row(tex) == wanted
    assert row("[0,5)").startswith("<mrow><mo>[</mo>")
    vector = row(r"\begin{pmatrix} 3 \\ -1 \end{pmatrix}")
    assert (vector.count("<mtr>"), vector.count('fence="true"')) == (2, 2)


def test_parse_shows_inline_fractions_at_full_size_blocks_by_attribute_and_keeps_its_source() -> None:
    assert mathml.parse(r"\frac{1}{2}").startswith('<math displaystyle="true">')
    assert mathml.parse("x").startswith("<math><semantics>")
    assert mathml.parse(r"\frac{1}{2}", block=True).startswith('<math display="block">')
    assert '<annotation encoding="application/x-tex">a &lt; b</annotation>' in mathml.parse(" a < b ")


WRONG = [
    ("", "empty", 0), ("   ", "empty", 0), ("x^", "nothing after", 1), ("^2", "nothing before", 0),
    ("x^2^3", "a second", 3), ("x^{}^2", "a second", 4), ("x''^2", "a second", 3), ("{x", "never closed", 0),
    ("x}", "never opened", 1), (r"\frac{1}", "nothing after", 0), (r"\frac", "nothing after", 0),
    (r"\frac12", "needs braces", 5), ("x^12", "needs braces", 2), (r"\href{x}{y}", r"\\href is not allowed", 0),
    (r"x+\input", r"\\input is not allowed", 2), (r"\left(x", r"\\left without", 0),
    (r"\left x\right)", "no bracket", 0), (r"x\right)", "without its opening", 1),
    (r"\begin{pmatrix}1", "never ended", 0), (r"\begin{evil}1\end{evil}", "not allowed", 0),
    (r"\begin{pmatrix}1\end{matrix}", "another name", 0), (r"\begin x", "no name", 0),
    (r"\text{a", "never closed", 5), (r"\text x", "in braces", 0), (r"\text{\frac12}", "a command inside", 6),
    (r"\text{$x$}", "inside", 6), (r"\mathrm x", "needs braces", 0), (r"\mathrm{}", "nothing after", 0),
    (r"\mathrm{\alpha}", "only letters", 8), (r"\sqrt[3", "never closed", 0), ("a & b", "outside a table", 2),
    ("$x$", "not mathematics", 0), ("x\\", "a lone backslash", 1), ("x # y", "not mathematics", 2),
    ("x \n eq 3", "was a backslash lost", 2), ("3 \times 4", "was a backslash lost", 2),
    (r"a \\ b", "not allowed", 2),
]  # fmt: skip


def test_parse_says_what_is_wrong_and_where() -> None:
    for tex, problem, position in WRONG:
        with pytest.raises(TexError, match=problem) as caught:
            mathml.parse(tex)
        assert (caught.value.position, isinstance(caught.value, ValueError)) == (position, True), tex


def test_parse_stops_at_deep_nesting_long_input_and_many_unmatched_brackets() -> None:
    with pytest.raises(TexError, match="deep"):
        mathml.parse("{" * 100 + "x" + "}" * 100)
    with pytest.raises(TexError, match="longer"):
        mathml.parse("x" * (MAX_LENGTH + 1))
    assert mathml.parse("(" * 1000).count("<mo") == 1000  # backtracking would never end
    assert row("([" * 10 + "x" + ")]" * 10).count("<mrow>") == 20


def test_check_names_bad_expressions_and_raw_tex_by_character() -> None:
    assert mathml.check(r"The square \(x^2\) is fine, so is \[ \frac{1}{2} \] here.") == []
    assert mathml.check(r"Bad \(x^\)") == ["nothing after '^' (at character 8)"]
    assert mathml.check(r"Raw \frac{1}{2}") == [r"a backslash outside \( … \) (at character 5)"]
    assert mathml.check("It costs $5") == ["a $ sign (at character 10)"]
    assert mathml.check(r"open \( x") == [r"a backslash outside \( … \) (at character 6)"]


_PIECES = st.sampled_from(
    [r"\frac{1}{2}", "x", "2", "^", "_", "{", "}", "(", ")", "[", "]", r"\left(", r"\right)", r"\sqrt", "&", r"\\", "'",
     r"\begin{pmatrix}", r"\end{pmatrix}", r"\text{a}", "+", "=", "<", r"\sin", r"\circ", ",", "\n", "é"]
)  # fmt: skip


def _set(tex: str) -> str | int:
    """The markup, or the position of the error."""
    try:
        return mathml.parse(tex)
    except TexError as error:
        return error.position


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_parse_gives_wellformed_markup_or_a_position(tex: str) -> None:
    made = _set(tex)
    if isinstance(made, int):
        assert 0 <= made <= len(tex)
    else:
        ElementTree.fromstring(made)
