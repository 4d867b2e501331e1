"""A small course for tests of publishing: one lesson with every kind of answer, card and figure."""

from __future__ import annotations

import copy
from typing import Any

from pipeline.publish.base import Bundle

Json = dict[str, Any]


def course() -> Json:
    """A catalogue course: two topics, one of them cross-cutting."""

    def group(name: str, title: str, cross_cutting: bool, **outcomes: str) -> Json:
        rows = [
            {"id": f"{name}.{key}", "code": "", "title": each, "points": [{"id": f"{name}.{key}.1", "text": each}]}
            for key, each in outcomes.items()
        ]
        return {"id": name, "kind": "topic", "title": title, "cross_cutting": cross_cutting, "outcomes": rows}

    return {
        "id": "mathematics/national_5", "subject": "mathematics", "level": "national_5",
        "title": "National 5 Mathematics", "code": "C847 75",
        "course_id": "course_c84775", "scqf": {"level": 5, "credits": 24}, "structure": "skills",
        "groups": [
            group("num", "Numerical skills", False, surds="Working with surds", indices="Laws of indices",
                  fractions="Working with fractions"),
            group("reason", "Reasoning skills", True, explain="Explaining a solution"),
        ],
        "assessment": {
            "components": [{"id": "p1", "title": "Paper 1", "marks": 40, "minutes": 60, "calculator": False}],
            "provided": ["data sheet", "relationships sheet"],
            "sheets": [{"title": "Formulae list", "lines": [r"Area of a triangle: \(A = \frac{1}{2}ab\sin C\)"]}],
        },
        "sources": [{"ref": "course specification", "covers": ["outcomes"], "verified": "partly", "note": ""}],
    }  # fmt: skip


def item(answer: str | Json, marks: int = 1, **fields: Any) -> Json:
    """A question: its answer, or options or parts, and what else it has."""
    given = {"answer": answer} if isinstance(answer, str) else answer
    earned = ["finds the square factor\n\\(\\sqrt{25 \\times 2}\\)", *["finds it"] * 5][:marks]
    return {
        "tests": ["point 1"],
        **given,
        "working": [
            "Write 48 as a square times a whole number.\n\\(\\sqrt{48} = \\sqrt{16 \\times 3}\\)",
            "Take the root of the square out.\n\\(\\sqrt{48} = 4\\sqrt{3}\\)",
        ],
        "marks": earned,
        "feedback": "The largest square factor saves a second step.",
        **fields,
        "ask": fields.get("ask") or f"This is a question whose answer has {marks} of the marks.",
    }


def wrong(method: str, error: str) -> list[Json]:
    return [{"method": method, "error": error, "mistake": 1}]


def items() -> list[Json]:
    """One question of every kind: numbers, roots, letters, words, options, parts; every kind of `more`."""
    options = [
        {"text": r"\(3\sqrt{2}\)", "why": "Right: 18 is 9 times 2."},
        {
            "text": r"\(2\sqrt{3}\)",
            "why": "The square and the rest changed places.",
            "method": "2*sqrt(3)",
            "mistake": 1,
        },
        {"text": r"\(9\sqrt{2}\)", "why": "The square was not rooted.", "mistake": 1},
    ]
    parts = [
        {"expression": "sqrt(50)", "answer": r"\(5\sqrt{2}\)", "ask": r"Simplify \(\sqrt{50}\)."},
        {"answer": "It is a little over 7 metres.", "ask": "Say in words what this length means for the rope."},
    ]
    return [
        item("60 cm", expression="4*15", wrong=wrong("4+15", "added instead of multiplying"),
             more=["hint: Look for a square number that divides 48.", "calculator: yes"]),
        item(r"\(4\sqrt{3}\)", 2, wrong=wrong("2*sqrt(12)", "stopped at a factor that is not the largest square"),
             more=["follow_through: The second mark stays open.", "alternative: Split into primes and pair them.",
                   "alternative: Divide by 4 twice.", "hint: Try 16.", "hint: Then try 3."]),
        item(r"\(\frac{7}{12}\)", 3, figures=figures()[1:]),
        item(r"\((x-3)(x+3)\)", 2, ask="Sketch the graph of \\(y = (x-3)(x+3)\\) and write it as a product."),
        item(r"\(x = 2\) or \(x = 3\)", 2),
        item("10 m/s", 2),
        item({"options": options}),
        item("It has no square factor.",
             more=["accept: It has no whole square factor.", "must: square factor", "reject: It is small."]),
        item({"parts": parts}, marks=3) | {"marks": [
            "(a) finds the square factor\n\\(\\sqrt{25 \\times 2}\\)", "(a) simplifies",
            "(b) explains in context\nabout 7 metres of rope"]},
    ]  # fmt: skip


#: How the questions of the lesson were checked: what code and the second solver found.
CHECKS: Json = {
    "warnings": [],
    "by": {"c1.q1": "computed", "c1.q2": "computed", "c4.q1": "nobody", "c6.q1": "in part"},
    "wrong": {"c1.q1.wrong.1": "19 cm"},
    "blind": {"c1.q1": "agreed", "c1.q2": "differs"},
}


def figures() -> list[Json]:
    """A chart, a graph and a shape."""
    return [
        {"kind": "bar chart", "lines": ["title: Rain in Oban", "x: month", "y: rain / mm", "bar May: 60",
                                        "bar June: 70", "bar July: 85"]},
        {"kind": "axes", "lines": ["x: x, -2 to 2", "y: y, -3 to 5", "line: (-2, -3) (0, 1) (2, 5)"]},
        {"kind": "triangle", "lines": ["corners: A B C", "AB: 9 cm", "AC: 7 cm", "angle A: 40°"]},
    ]  # fmt: skip


def explainer() -> Json:
    return {
        "kind": "explainer",
        "title": "What a surd is",
        "minutes": 10,
        "teaches": [1],
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
        "mistakes": [1],
        "figures": figures()[:1],
        "watch_for": "Pupils who round at once.",
    }


def modelling() -> Json:
    working = [
        "Find the largest square that divides 75.\n\\(75 = 25 \\times 3\\)",
        "Split the root.\n\\(\\sqrt{75} = \\sqrt{25} \\times \\sqrt{3}\\)",
        "Take the root of 25.\n\\(\\sqrt{75} = 5\\sqrt{3}\\)",
    ]
    example = {"working": working, "answer": r"\(5\sqrt{3}\) m", "ask": r"Simplify \(\sqrt{75}\)."}
    return {"kind": "modelling", "title": "One surd, step by step", "minutes": 8, "examples": [example]}


def lesson(title: str = "Simplifying surds with square factors") -> Json:
    """A teach lesson that holds every kind of card, question and figure."""
    made = items()
    return {
        "title": title,
        "outcome": "I can simplify a surd by finding its largest square factor.",
        "prior": ["Square numbers up to 144.", "lesson 3: You can find factors."],
        "key_points": [
            "A surd is simplified when no square factor is left under the root.",
            "The root of a product is the product of the roots.",
            "Leaving the root keeps a length exact.",
        ],
        "keywords": ["surd: a root that is not equal to any fraction",
                     "square factor: a number such as 16 that is a square and divides the number"],
        "misconceptions": [
            {"belief": "The square that comes out keeps its size.",
             "correction": "Its root comes out, since a root undoes a square."},
            {"belief": r"\(\sqrt{a+b}\) equals \(\sqrt{a}+\sqrt{b}\).",
             "correction": "Only products can be split: 9 + 16 is 25, and 3 + 4 is not 5."},
        ],
        "cycles": [{"title": "Simplify a surd", "aim": "Simplify a surd with its largest square factor."}],
        "cards": [
            question_card("starter", "What you know", 5, made[:2]),
            explainer(),
            modelling(),
            question_card("check", "Does it make sense", 5, made[6:8]),
            question_card("guided_practice", "Practise with help", 17, made[2:6]),
            question_card("exit_ticket", "Before you go", 5, made[8:], rubric=[
                "3: Secure: go on to the next lesson.", "0: Read the explanation again."]),
        ],
        "notes": [
            {"kind": "resources", "text": "squared paper"},
            {"kind": "watch_for", "text": "Factors that are not the largest."},
            {"kind": "if_they_struggle", "text": "List the square numbers first."},
            {"kind": "if_they_fly", "text": "Rationalise a denominator."},
        ],
        "labels": ["practical_work: cut a rope"],
    }  # fmt: skip


def mock_exam() -> Json:
    """A paper of the course's exam."""
    paper = question_card("assessment", "Paper 1 without a calculator", 60, items()[2:6])
    return {**lesson("A mock exam over the whole of the course"), "cycles": [], "cards": [{**paper, "component": "p1"}]}


def question_card(kind: str, title: str, minutes: int, made: list[Json], **fields: Any) -> Json:
    return {
        "kind": kind, "title": title, "minutes": minutes, "instructions": "Answer in your jotter.", "items": made,
        **fields,
    }  # fmt: skip


def entry(order: int, title: str, refs: list[str], kind: str = "teach") -> Json:
    return {
        "order": order, "lesson_type": kind, "block": "Numerical skills",
        "outcome_refs": refs, "points": [f"{ref}.1" for ref in refs],
        "cross_cutting": ["reason.explain"], "label": title, "rationale": "First, because later lessons need it.",
        "calculator": "mixed", "minutes": 50, "prerequisites": [],
        "summary": "Square factors, then simplifying in steps, then practice.",
        "emphasis": ["the largest square factor"], "context": "roofs and ropes in Oban",
    }  # fmt: skip


def bundle(*, draft: bool = False, lessons: int = 2, failed: bool = False, **about: Any) -> Bundle:
    """A course of a few lessons; one outcome is not covered."""
    titles = ["Simplifying surds with square factors", "Multiplying powers with the same base",
              "Adding two fractions simply"]  # fmt: skip
    refs = ["num.surds", "num.indices", "num.fractions"]
    names = [titles[number % 3] + (f" {number + 1}" if number > 2 else "") for number in range(lessons + failed)]
    rows = [
        {"order": number, "schema": 2, "lesson": lesson(name), "checks": CHECKS, "critic": None}
        for number, name in enumerate(names[:lessons], 1)
    ]
    entries = [entry(number, name, [refs[(number - 1) % 3]]) for number, name in enumerate(names, 1)]
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
