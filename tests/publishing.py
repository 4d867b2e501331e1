"""A small course for tests of publishing: one lesson with every kind of answer, card and figure."""

from __future__ import annotations

import copy
from typing import Any

from pipeline.publish.base import Bundle

Json = dict[str, Any]

EXACT: Json = {"kind": "exact", "amount": 0}


def course() -> Json:
    """A catalogue course: two topics, one of them cross-cutting."""

    def group(name: str, title: str, cross_cutting: bool, **outcomes: str) -> Json:
        rows = [{"id": f"{name}.{key}", "code": "", "title": each, "points": []} for key, each in outcomes.items()]
        return {"id": name, "kind": "topic", "title": title, "cross_cutting": cross_cutting, "outcomes": rows}

    return {
        "id": "mathematics/national_5", "title": "National 5 Mathematics", "code": "C847 75",
        "course_id": "course_c84775", "scqf": {"level": 5, "credits": 24}, "structure": "skills",
        "groups": [
            group("num", "Numerical skills", False, surds="Working with surds", indices="Laws of indices",
                  fractions="Working with fractions"),
            group("reason", "Reasoning skills", True, explain="Explaining a solution"),
        ],
        "sources": [{"ref": "course specification", "covers": ["outcomes"], "verified": "partly", "note": ""}],
    }  # fmt: skip


def rounding(kind: str = "exact", amount: int = 0) -> Json:
    return {"kind": kind, "amount": amount}


def wrong(value: str, shows: str, misconception: str = "m1") -> Json:
    return {"misconception": misconception, "expression": value, "value": value, "shows": shows}


def answers() -> list[Json]:
    """One answer of every kind."""
    return [
        {"kind": "numeric", "expression": "4*15", "rounding": rounding(), "value": "60", "unit": "cm", "tolerance": "0",
         "wrong": [wrong("19", "added instead of multiplying")], "shown": "60 cm"},
        {"kind": "surd", "expression": "sqrt(48)", "value": "4*sqrt(3)", "form": "simplest",
         "wrong": [wrong("2*sqrt(12)", "stopped at a factor that is not the largest square")],
         "shown": r"\(4\sqrt{3}\)"},
        {"kind": "fraction", "expression": "1/3 + 1/4", "value": "(7/12)", "form": "lowest_terms",
         "wrong": [wrong("2/7", "added tops and bottoms")], "shown": r"\(\frac{7}{12}\)"},
        {"kind": "power", "expression": "2^3 * 2^4", "value": "2^(-7)", "form": "single_power", "wrong": [],
         "shown": r"\(2^{7}\)"},
        {"kind": "algebra", "from_expression": "x^2 - 9", "variables": ["x"], "form": "factorised", "subject": "",
         "answer": "(x-3)*(x+3)", "wrong": [], "shown": r"\((x-3)(x+3)\)"},
        {"kind": "equation", "equations": ["x^2 - 5*x + 6 = 0"], "variables": ["x"], "low": "", "high": "",
         "rounding": rounding(), "roots": [{"values": ["2"]}, {"values": ["3"]}], "wrong": [],
         "shown": r"\(x = 2\) or \(x = 3\)"},
        {"kind": "inequality", "relation": "3*x - 1 < 8", "variable": "x", "sign": "<", "boundary": "3", "wrong": [],
         "shown": r"\(x < 3\)"},
        {"kind": "statistics", "data": ["2", "4", "9"], "quantity": "mean", "rounding": rounding(), "value": "5",
         "unit": "", "wrong": [wrong("4", "gave the median")], "shown": "5"},
        {"kind": "trig", "shape": "triangle", "sides": ["7", "9"], "angles": ["40"], "expression": "0.5*7*9*sin(40)",
         "rounding": rounding("dp", 1), "value": "20.2", "unit": "cm^2", "tolerance": "0.05",
         "wrong": [wrong("40.5", "left out the half")], "shown": "20.2 cm²"},
        {"kind": "vector", "expressions": ["1+2", "-3+2"], "values": ["3", "-1"], "wrong": [],
         "shown": r"\(\begin{pmatrix} 3 \\ -1 \end{pmatrix}\)"},
        {"kind": "science", "relationship": "v = u + a*t", "relationship_ref": "odu.motion.1",
         "substitutions": [{"name": "u", "value": "0", "unit": "m/s"}], "target": "v", "expression": "0 + 2*5",
         "rounding": rounding(), "value": "10", "unit": "m/s", "wrong": [], "shown": r"10 \(\mathrm{m/s}\)"},
        {"kind": "mcq", "key": 1, "shown": r"\(3\sqrt{2}\)",
         "options": [
             {"text": r"\(2\sqrt{3}\)", "expression": "2*sqrt(3)", "method": "", "misconception": "m1",
              "why": "The square and the rest changed places."},
             {"text": r"\(3\sqrt{2}\)", "expression": "3*sqrt(2)", "method": "", "misconception": "",
              "why": "Right: 18 is 9 times 2."},
             {"text": r"\(9\sqrt{2}\)", "expression": "9*sqrt(2)", "method": "", "misconception": "m1",
              "why": "The square was not rooted."},
         ]},
        {"kind": "short_text", "accepted": ["It has no whole square factor."], "must_have": ["square factor"],
         "reject": ["It is small."], "shown": "It has no square factor."},
        {"kind": "structured", "shown": r"(a) \(5\sqrt{2}\) (b) 7.07 m",
         "parts": [
             {"label": "(a)", "uses": [], "follow_through": False, "marks": 2, "prompt": r"Simplify \(\sqrt{50}\).",
              "answer": {"kind": "surd", "expression": "sqrt(50)", "value": "5*sqrt(2)", "form": "simplest",
                         "wrong": [], "shown": r"\(5\sqrt{2}\)"},
              "scheme": [bullet("finds the square factor", r"\(\sqrt{25 \times 2}\)"),
                         bullet("simplifies", r"\(5\sqrt{2}\)")]},
             {"label": "(b)", "uses": ["(a)"], "follow_through": True, "marks": 1,
              "prompt": "Say in words what this length means for the rope.",
              "answer": {"kind": "short_text", "accepted": ["about 7 metres"], "must_have": [], "reject": [],
                         "shown": "It is a little over 7 metres."},
              "scheme": [bullet("explains in context", "about 7 metres of rope")]},
         ]},
    ]  # fmt: skip


def bullet(generic: str, illustration: str) -> Json:
    return {"generic": generic, "illustration": illustration}


def step(does: str, shows: str = "", check: str = "") -> Json:
    return {"does": does, "shows": shows, "check": check}


def item(name: str, answer: Json, *, marks: int = 1, figures: list[Json] | None = None, stem: str = "") -> Json:
    parts = answer.get("parts")
    return {
        "id": name, "points": [], "prior": "", "key_points": [], "misconceptions": [], "from_lesson": 0,
        "calculator": False, "givens": [], "answer": answer, "figures": figures or [],
        "working": [
            step("Write 48 as a square times a whole number.", r"\(\sqrt{48} = \sqrt{16 \times 3}\)"),
            step("Take the root of the square out.", r"\(\sqrt{48} = 4\sqrt{3}\)"),
        ],
        "marks": sum(part["marks"] for part in parts) if parts else marks,
        "scheme": [] if parts else [bullet("finds it", answer["shown"]) for _ in range(marks)],
        "alternatives": ["Split into primes and pair them."],
        "follow_through": "The second mark stays open." if marks > 1 else "",
        "feedback": "The largest square factor saves a second step.",
        "hints": ["Look for a square number that divides 48."],
        "stem": stem or f"This is a question whose answer is of the kind {answer['kind']}.",
    }  # fmt: skip


def figures() -> list[Json]:
    """A table, a bar chart, a line and a shape."""
    return [
        {"kind": "bar_chart", "alt": "Bars of rainfall in Oban: May 60, June 70 and July 85 millimetres.",
         "columns": ["Month", "Rain in mm"], "rows": [["May", "60"], ["June", "70"], ["July", "85"]], "function": ""},
        {"kind": "function_graph", "alt": "A straight line through (-2, -3), (0, 1) and (2, 5).", "columns": ["x", "y"],
         "rows": [["-2", "-3"], ["0", "1"], ["2", "5"]], "function": "2*x + 1"},
        {"kind": "triangle", "alt": "A triangle with sides 7 cm and 9 cm and 40° between them.",
         "columns": ["Part", "Measure"], "rows": [["side a", "7 cm"], ["side b", "9 cm"], ["angle C", "40°"]],
         "function": ""},
    ]  # fmt: skip


def explainer() -> Json:
    return {
        "kind": "explainer", "id": "explain_1", "title": "What a surd is", "minutes": 10, "cycle": 1,
        "text": (
            "A tile has an area of 3 square metres, so its side is \\(\\sqrt{3}\\) metres long. No fraction is equal "
            "to that length. A root that cannot be written as a fraction is called a surd, and we leave it as it is "
            "because that keeps it exact.\n\n"
            "Some roots hide a whole number. Look for a square factor:\n\n"
            "- 4, 9, 16 and 25 are square numbers\n- use the largest one that divides the number\n\n"
            "Then the root of the product is the product of the roots: "
            "\\[\\sqrt{48} = \\sqrt{16 \\times 3} = \\sqrt{16} \\times \\sqrt{3} = 4\\sqrt{3}\\] "
            "The temperature fell to -4 degrees while the 12 cm rod kept its exact length."
        ),
        "plain": "Some roots never end. We call them surds. We keep the root sign. Then the number stays exact.",
        "non_example": r"\(\sqrt{16}\) is not a surd, because it equals 4.",
        "misconceptions": ["m1"],
        "figures": figures()[:1],
        "watch_for": "Pupils who round at once.",
    }  # fmt: skip


def modelling() -> Json:
    steps = [
        step("Find the largest square that divides 75.", r"\(75 = 25 \times 3\)", "75 = 25*3"),
        step("Split the root.", r"\(\sqrt{75} = \sqrt{25} \times \sqrt{3}\)"),
        step("Take the root of 25.", r"\(\sqrt{75} = 5\sqrt{3}\)"),
    ]
    example = {"id": "e1", "problem": r"Simplify \(\sqrt{75}\).", "answer": r"\(5\sqrt{3}\)", "steps": steps}
    return {
        "kind": "modelling", "id": "model_1", "title": "One surd, step by step", "minutes": 8, "cycle": 1,
        "examples": [example],
    }  # fmt: skip


def lesson(order: int = 1, title: str = "Simplifying surds with square factors") -> Json:
    """A teach lesson that holds every kind of card, answer and figure."""
    made = answers()
    practice = [item(f"p{n}", answer, marks=1 + n % 3) for n, answer in enumerate(made[3:11], 1)]
    practice[0]["figures"] = figures()[1:]
    practice[1]["stem"] = "Sketch the graph of \\(y = (x-3)(x+3)\\) and write the expression as a product of factors."
    practice[2]["calculator"] = True
    return {
        "order": order,
        "lesson_type": "teach",
        "title": title,
        "outcome": "I can simplify a surd by finding its largest square factor.",
        "outcome_refs": ["num.surds"],
        "cross_cutting": ["reason.explain"],
        "calculator": "mixed",
        "minutes": 50,
        "prior_knowledge": [{"id": "k1", "text": "Square numbers up to 144.", "from_lesson": 0}],
        "key_learning_points": [
            {"id": "l1", "text": "A surd is simplified when no square factor is left under the root."},
            {"id": "l2", "text": "The root of a product is the product of the roots."},
            {"id": "l3", "text": "Leaving the root keeps a length exact."},
        ],
        "keywords": [
            {"term": "surd", "definition": "a root that is not equal to any fraction", "gaelic": "freumh"},
            {"term": "square factor", "definition": "a number such as 16 that is a square and divides the number",
             "gaelic": ""},
        ],
        "misconceptions": [
            {"id": "m1", "belief": "The square that comes out keeps its size.",
             "correction": "Its root comes out, since a root undoes a square.", "wrong_method": ""},
            {"id": "m2", "belief": r"\(\sqrt{a+b}\) equals \(\sqrt{a}+\sqrt{b}\).",
             "correction": "Only products can be split: 9 + 16 is 25, and 3 + 4 is not 5.", "wrong_method": ""},
        ],
        "cycles": [{"title": "Simplify a surd", "aim": "Simplify a surd with its largest square factor."}],
        "cards": [
            question_card("starter", "start", "What you know", 5, [item(f"s{n}", a) for n, a in enumerate(made[:3])]),
            explainer(),
            modelling(),
            question_card("check", "check_1", "Does it make sense", 5, [item("c1", made[11]), item("c2", made[12])], 1),
            question_card("guided_practice", "practice", "Practise with help", 17, practice),
            question_card("exit_ticket", "exit", "Before you go", 5, [item("x1", made[13]), item("x2", made[0])], 0, [
                {"from_marks": 3, "means": "Secure: go on to the next lesson."},
                {"from_marks": 0, "means": "Read the explanation again."},
            ]),
        ],
        "points": [{"ref": "num.surds.1", "card": "explain_1", "items": ["p1"]}],
        "labels": [{"category": "practical_work", "quotation": "cut a rope"}],
        "teacher_notes": {
            "resources": ["squared paper"],
            "watch_for": "Factors that are not the largest.",
            "if_they_struggle": "List the square numbers first.",
            "if_they_fly": "Rationalise a denominator.",
            "safety": "",
        },
    }  # fmt: skip


def question_card(
    kind: str, name: str, title: str, minutes: int, items: list[Json], cycle: int = 0, rubric: list[Json] | None = None
) -> Json:
    return {
        "kind": kind, "id": name, "title": title, "minutes": minutes, "cycle": cycle, "component": "",
        "instructions": "Answer in your jotter.", "items": items, "rubric": rubric or [],
    }  # fmt: skip


def entry(order: int, title: str, refs: list[str], kind: str = "teach") -> Json:
    return {
        "order": order, "lesson_type": kind, "block": "Numerical skills", "outcome_refs": refs, "points": [],
        "cross_cutting": ["reason.explain"], "label": title, "rationale": "First, because later lessons need it.",
        "calculator": "non_calc", "minutes": 50, "prerequisites": [],
        "summary": "Square factors, then simplifying in steps, then practice.",
        "emphasis": ["the largest square factor"], "context": "roofs and ropes in Oban",
    }  # fmt: skip


def bundle(*, draft: bool = False, lessons: int = 2, failed: bool = False, **about: Any) -> Bundle:
    """A course of a few lessons; one outcome is not covered."""
    titles = ["Simplifying surds with square factors", "Multiplying powers with the same base",
              "Adding two fractions simply"]  # fmt: skip
    refs = ["num.surds", "num.indices", "num.fractions"]
    rows = []
    for number in range(lessons):
        made = lesson(number + 1, titles[number % 3] + (f" {number + 1}" if number > 2 else ""))
        made["outcome_refs"] = [refs[number % 3]]
        rows.append({"order": number + 1, "lesson": made, "checks": {}, "critic": None})
    entries = [entry(n + 1, titles[n % 3], [refs[n % 3]]) for n in range(lessons + failed)]
    lost = [{"order": lessons + 1, "label": titles[lessons % 3], "reason": "answer of p3 is wrong"}] if failed else []
    author, model = ("offline", "offline") if draft else ("model", "claude-sonnet-5-5")
    stated = {"author": author, "model": model, "prompts": {"lesson": "a" * 64}, "catalogue": "b" * 64, **about}
    scheme = {
        "course_id": "course_c84775", "catalogue": "b" * 64, "lesson_count": len(entries), "partial": lessons < 3,
        "not_covered": refs[lessons:], "entries": entries,
    }  # fmt: skip
    name = "course_c84775-draft" if draft else "course_c84775"
    return Bundle(name, course(), scheme, copy.deepcopy(rows), lost, stated, draft)


#: Text that would break a page which did not escape it.
HOSTILE = (
    "</style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"' javascript:alert(3) & --> ]]> "
    "\x00 \ud800 https://example.org/x"
)


def poisoned(value: Any, keep: frozenset[str] = frozenset()) -> Any:
    """The JSON value with hostile words after every text that a person would read."""
    if isinstance(value, dict):
        return {key: one if key in keep else poisoned(one, keep) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, keep) for one in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) else value
