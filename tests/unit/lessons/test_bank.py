"""The interpreter of the question bank: draws, prints, and refuses with line and reason."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.bank import shape
from pipeline.bank.instance import Instance
from pipeline.bank.space import permuted
from pipeline.bank.text import filled
from pipeline.bank.topic import Bank, Topic, files, read_topic
from pipeline.content.lesson import Item, WorkedExample
from pipeline.errors import BankError
from pipeline.lessons.checks_topics import examine
from pipeline.maths.display import FORMS, prose, shown_value
from pipeline.maths.evaluation import EvaluationError, evaluate
from pipeline.maths.functions import TABLE

DOCS = Path("devops/docs").resolve()
SMALL = DOCS / "examples" / "topic.yaml"


def small(tmp_path: Path, old: str = "", new: str = "", name: str = "topic.yaml") -> Path:
    """Return a copy of the small topic in which a text stands for another."""
    text = SMALL.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def topic() -> Topic:
    return read_topic(SMALL)


def template(name: str) -> Any:
    return next(each for each in topic().templates() if each.id == name)


@given(st.integers(1, 3000), st.text(max_size=8))
@settings(max_examples=60, deadline=None)
def test_the_order_of_a_key_is_a_permutation(size: int, key: str) -> None:
    assert sorted(permuted(place, size, key) for place in range(size)) == list(range(size))


def test_a_place_of_a_vast_space_is_found_at_once() -> None:
    assert 0 <= permuted(12_345, 10**60, "key") < 10**60


def test_nothing_is_drawn_twice_before_all_is_used() -> None:
    questions = template("off")
    walk = questions.walk(1000, "class")
    keys = [instance.key for instance in walk.found]
    assert len(set(keys)) == len(keys) == 24
    assert questions.draw(24, "class").key == keys[0]
    assert [questions.draw(n, "other").key for n in range(24)] != keys
    assert all("Sofia" not in part for part in keys[0])


def test_names_differ_within_a_class() -> None:
    first = [template("off").draw(n, "class").ask.split()[0] for n in range(8)]
    assert len(set(first)) == 8


def test_another_process_prints_the_same() -> None:
    code = (
        "from pathlib import Path; from pipeline.bank.topic import read_topic;"
        f"t = read_topic(Path({str(SMALL)!r}));"
        "print([q.draw(n, 'seed').item(['point 1']) for q in t.questions for n in range(3)])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == str([q.draw(n, "seed").item(["point 1"]) for q in topic().questions for n in range(3)])


def test_items_are_those_of_lessons() -> None:
    for one in topic().questions:
        Item.model_validate(one.draw(1, "s").item(["point 1"], {"divide": 1}))
    WorkedExample.model_validate(topic().examples[0].draw(0).example())
    item = template("pick").draw(0, "s").item(["point 2", "mistake 1"], {"divide": 1})
    assert item["options"][1]["mistake"] == 1
    assert re.fullmatch(r"\d+/\d+", item["options"][1]["method"])
    assert template("solve").draw(0, "s").item(["point 1"])["expression"].count("=") == 1
    assert [part["ask"] for part in template("both").draw(0).item(["point 1"])["parts"]][1].startswith("Say whether")
    assert template("off").draw(0).item(["point 1"])["more"][1] == "hint: What is one per cent?"


def test_what_an_assembler_reads() -> None:
    one = topic()
    assert (one.course, one.outcome, one.calculator, one.watch_for) == (
        "mathematics/national_5",
        "num.percent",
        True,
        "",
    )
    assert one.misconceptions["divide"]["belief"].startswith("To find 5 %")
    assert "\n" not in one.explain
    assert template("off").mistakes == frozenset()
    assert template("pick").mistakes == {"divide"}
    origin = template("pick").draw(0, "s").origin
    assert origin["question"] == "pick"
    assert len(origin["hash"]) == 16


@pytest.mark.parametrize(
    ("text", "form", "shown"),
    [
        ("28000.5", "", "28,000.5"), ("1234.5", "money", "£1234.50"), ("-7", "money", "-£7"),
        ("19995", "money 3 sf", "£20,000"),
        ("2.345", "2 dp", "2.35"), ("1/3", "2 dp ()", "0.33"), ("-5", "()", "(-5)"), ("5", "signed", "+5"),
        ("-1", "coef", "-"),
        ("1", "coef", ""), ("11/6", "mixed", r"1\frac{5}{6}"), ("-1/3", "frac", r"-\frac{1}{3}"),
        ("0.5", "frac", r"\frac{1}{2}"),
        ("4970000", "3 sf scientific", r"4.97 \times 10^6"), ("0.00009996", "scientific 3 sf", r"1.00 \times 10^{-4}"),
        ("(3, -2)", "", "(3, -2)"), ("(3, -2)", "vector", r"\begin{pmatrix} 3 \\ -2 \end{pmatrix}"),
        ("factor(6*x^2 + x - 2)", "", "(2x - 1)(3x + 2)"), ("(x + 1)*(x - 3)", "expanded", "x^2 - 2x - 3"),
        ("2*(x - 3)^2 + 1", "code", "2*(x - 3)^2 + 1"), ("18/sqrt(6)", "", r"3\sqrt{6}"), ("5 - 2*x", "", "5 - 2x"),
        ("4*pi*x^2", "", r"4\pi x^2"), ("x^(3/2)", "", r"x^{\frac{3}{2}}"), ("[1, 2.5]", "", "1, 2.5"),
        ("1235", "nearest 10", "1240"),
    ],
)  # fmt: skip
def test_forms(text: str, form: str, shown: str) -> None:
    assert shown_value(evaluate(text, letters="x"), form) == shown


@pytest.mark.parametrize(("text", "form"), [("sin(20)", ""), ("1/3", "decimal"), ("x", "2 dp"), ("x", "mixed")])
def test_what_has_no_such_form(text: str, form: str) -> None:
    with pytest.raises(EvaluationError):
        shown_value(evaluate(text, letters="x"), form)


def test_one_notation_inside_and_outside_formulas() -> None:
    def show(piece: Any) -> str:
        return shown_value(evaluate(piece.code, {"n": Fraction(-28000), "m": Fraction(2)}), piece.form)

    assert filled(r"<n>, \(<n>\), <sqrt(m)>", show) == r"−28,000, \(-28{,}000\), \(\sqrt{2}\)"
    assert filled("at (<n>, <m>)", show, figure=True) == "at (-28000, 2)"
    assert prose("£5") == "£5"


#: What is typed instead of what, and what is said of it.
FAULTS = [
    ("level: 2", "level: 2\n    level: 3", "'level' is given twice"),
    ("a: 40..400 step 20}", "a: dp(40, 1)}", "a comma in { } ends the entry"),
    ("facts:\n", "facts: &f\n", "anchors and aliases"),
    ("aim: Find", "aim: !x Find", r"tags \(!x\) are not used"),
    ("aim: Find", "aim: 'x' Find", "not YAML"),
    ("feedback: Half is fifty per cent.", 'feedback: "Half \\times is fifty."', "double quotes change TeX"),
    ("feedback: Half is fifty per cent.", "feedback: Half is fifty per cent of #1 it", "text after ' #'"),
    ("hint: What", "hints: What", "'hints' is not known; there are"),
    ("    stem: What is", "    stern: What is", "'stem' is missing"),
    ("can: calculate a percentage of an amount\n", "", "'can' is missing"),
    ("level: 3", "level: 6", "'level: 6' is not one of"),
    ("id: solve", "id: off", "the id 'off' is given twice"),
    ("unit: cm", "unit: cmm", "unit 'cmm' is neither known nor"),
    ("form: 1 dp", "form: 1 dpp", "form '1 dpp' is not known"),
    ("by: divide", "by: divided", "misconception 'divided' is not in this file"),
    (", by: divide", "", "misconception 'divide' is no wrong answer anywhere"),
    ("{is: a/p,", "{why: x,", "'why' is given twice"),
    ("answer: v\n", "answer: v2\n", "'v2' is not a number here; known: k, m, v, n"),
    ("answer: v\n", "answer: v +\n", "'v \\+' is not an expression"),
    ("answer: v\n", "answer: 2v\n", "a product needs its sign"),
    ("    expression: k*x + m = n\n", "", "'v' is in the answer, but the pupil does not see it"),
    ("expression: k*x + m = n", "expression: k*x = n", "the answer does not fulfil"),
    ("n: 2..9, m: 3..12", "n: 2..9, m: 3..12, z: 1..3", "'z' is drawn but"),
    ("to 1 decimal place", "in short", "form is 1 dp, but the stem does not say so"),
    ("answer: a*p/100\n    form: money", "answer: a*p/700", r"needs a form \(2 dp"),
    ("where: p != 10", "where: p == 1", "no numbers fit; always where"),
    ("{is: a - p,", "{is: 2*a/(2*p),", r"no numbers fit; mostly the same: a/p and 2\*a/\(2\*p\)"),
    (r"\(<a> \div 100 \times <p> = <a*p/100>\), so", r"\(<a> \div 100 \times <p> = <a*p/100 + 1>\), so", "not true"),
    (r"20 = 10\). The shop", r"20 = 11\). The shop", "not true"),
    (", so <a*p/100; money>.", ".", "last line of working does not show the answer"),
    ("The figure shows a rectangle", "A rectangle is 5 cm wide", "the stem does not speak of the figure"),
    ("corners: P Q R S", "corners: P Q", "no numbers fit; always figure"),
    ("a: 40..400 step 20", "a: 40..400 step 400", "only [0-7] different; a question needs 8"),
    ("a: 40..400 step 20", "a: 1..9000000", "has 9,000,000 values"),
    ("a: 40..400 step 20", "a: between 2 and 9", "is no range"),
    ("[[coat, 60]", "[[coat]", "'thing, a' has 2 names, a row has 1"),
    ("words: 'No'", "answer: a/(p - p)", "division by zero"),
    ("      - (b) Compares", "      - <(p> Compares", "a bracket is not closed"),
    ("bank: 1", "bank: 2", "'bank: 2' is not one of 1"),
    ("  - id: times", "  - text\n  - id: times", "keys and values are wanted"),
    ("prior:\n  - Multiplying", "prior:\n  - [Multiplying]\n  - Multiplying", "'prior' holds texts"),
    ("kind: choice", "kind: choices", "'kind: choices' is not one of choice"),
    ("      - {is: a*p, why: Forgot to divide by 100}\n", "", "a choice needs three or four wrong answers"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), FAULTS)
def test_every_fault_is_told_with_its_line(old: str, new: str, reason: str, tmp_path: Path) -> None:
    path = small(tmp_path, old, new)
    findings = examine(path, 12).findings
    assert any(re.search(reason, told) for _, told in findings), findings
    lines = path.read_text(encoding="utf-8").count("\n")
    assert all(1 <= line <= lines for line, _ in findings)


def test_the_line_is_that_of_the_fault(tmp_path: Path) -> None:
    path = small(tmp_path, "answer: v\n", "answer: v2\n")
    line = path.read_text(encoding="utf-8").splitlines().index("    answer: v2") + 1
    assert examine(path, 3).findings == [(line, "solve: 'v2' is not a number here; known: k, m, v, n, x")]


@pytest.mark.parametrize(
    "text",
    ["", "- a\n- b\n", "x", "[" * 5000, "a: " * 50, "a: [" + "{b: " * 40, "&a [*a]", "? [x]\n: y\n", "%YAML 9\n",
    "\x00", "a: 1\n---\nb: 2\n"],
)  # fmt: skip
def test_hostile_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(examine(path, 3).findings) >= 1


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in examine(path).findings[0][1]
    with pytest.raises(BankError) as caught:
        read_topic(tmp_path / "none.yaml")
    assert caught.value.code == "unreadable_file"


def test_the_small_topic_is_clean() -> None:
    made = examine(SMALL, 20)
    assert made.findings == []
    assert {row.id: row.different for row in made.rows}["solve"] == 20


def test_the_docs_show_this_topic_and_name_everything() -> None:
    guide = (DOCS / "bank.md").read_text(encoding="utf-8")
    assert f"```yaml\n{SMALL.read_text(encoding='utf-8')}```" in guide
    spans = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", guide, flags=re.DOTALL))
    named = {word for span in spans for word in (*re.findall(r"\w+", span), span)}
    keys = {*shape.TOPIC, *shape.ITEM, *shape.PART, *shape.WRONG}
    forms = {word for form in FORMS for word in form.split()} - {"N"}
    assert {*keys, *TABLE, *forms} - named == set()


def test_own_topics_stand_before_the_shipped_and_never_twice(tmp_path: Path) -> None:
    course = "mathematics/national_5"
    shipped = Bank().topic(course, "num.surds")
    assert shipped is not None
    own = small(tmp_path, "teaches: num.percent", "teaches: num.surds")
    found = Bank([tmp_path]).topic(course, "num.surds")
    assert found is not None
    assert found.path == own
    assert Bank([tmp_path]).hash(course) != Bank().hash(course)
    assert Bank().topic(course, "num.nothing") is None
    small(tmp_path, "teaches: num.percent", "teaches: num.surds", "again.yaml")
    with pytest.raises(BankError, match=r"again\.yaml and .*topic\.yaml") as caught:
        Bank([tmp_path])
    assert caught.value.code == "topic_twice"


def test_shipped_topics_have_the_shape_of_topics_and_are_where_they_say() -> None:
    paths = Bank().paths
    topics = [read_topic(path) for path in paths.values()]
    assert {(one.course, one.outcome) for one in topics} == paths.keys()


def test_threads_draw_what_one_alone_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons are drawn side by side: the n-th instance is the same whoever asks first."""
    alone, together = (read_topic(small(tmp_path, name=name)) for name in ("alone.yaml", "together.yaml"))
    wanted = [each.draw(n, "seed").ask for each in alone.questions for n in range(6)]
    check = Instance.check

    def slowly(self: Instance) -> None:
        Event().wait(0.002)
        check(self)

    monkeypatch.setattr(Instance, "check", slowly)
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(each.draw, n, "seed") for each in together.questions for n in range(6)]
    assert [job.result().ask for job in jobs] == wanted


def test_folders_that_are_hidden_hold_no_topics(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    small(tmp_path / ".venv")
    own = small(tmp_path)
    assert files(tmp_path) == [own]
