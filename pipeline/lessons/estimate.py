"""What a course will ask of a model: calls, tokens and largest requests, from prompts rendered beforehand.

Where there is no scheme yet, the offline author's stands in for it, so these are estimates. No prices here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from pipeline.lessons.asks import MAX_TOKENS, Asks
from pipeline.lessons.author import FORMS, MAX_CORRECTIONS, MAX_REVISIONS, MAX_UNREADABLE
from pipeline.lessons.course import Course
from pipeline.lessons.offline import answer
from pipeline.lessons.plan import make_plan
from pipeline.lessons.schemas import Entry, OutlineEntry
from pipeline.llm.base import BLOCK_TOKENS, Request

#: Bytes of text a token stands for, on average, in prompts like ours.
BYTES_PER_TOKEN = 3.8
#: A token is never more bytes of an answer than this, on average over a whole one.
MOST_BYTES_PER_TOKEN = 6
#: Output tokens of one answer, thinking included, as they usually come; corrections are a few parts of a lesson.
OUTPUT_TOKENS = {"outline": 600, "entry": 400, "correction": 400, "solve": 300, "critic": 1_600}
#: The outline grows with each lesson.
OUTLINE_EACH = 110
#: Bytes of a lesson by its type: in all, and for each point it teaches (lessons of models and of offline courses).
LESSON_BYTES = {
    "teach": (15_500, 1_800), "independent_practice": (14_500, 0), "formative_assessment": (7_500, 0),
    "revision": (13_000, 0),
}  # fmt: skip
#: Of an exam: for each mark of its papers; marks where the catalogue gives none.
BYTES_PER_MARK, GENERAL_MARKS = 400, 60
#: Calls of a kind for each lesson: whole lessons that cannot be read are rare; nearly every one is corrected once.
TRIES = {"lesson": 1.02, "correction": 0.9, "solve": 1.3, "critic": 1.15}
#: Calls of a kind for each lesson at most: after each correction it is solved and judged again.
MOST = {
    "lesson": 1 + MAX_UNREADABLE, "correction": MAX_CORRECTIONS, "solve": FORMS * (1 + MAX_CORRECTIONS),
    "critic": FORMS * (1 + MAX_CORRECTIONS),
}  # fmt: skip
#: Kinds of call that carry a lesson, or parts of it.
OF_LESSONS = ("correction", "solve", "critic")
#: Part of a lesson that its questions are, without answers and working.
QUESTIONS = 0.16


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of call; a label may have two rows (lessons, and the mock exam by itself)."""

    label: str
    #: Calls as they usually come, and at most (revisions included).
    calls: float
    most_calls: int
    #: Tokens of one call: new input, input read from the cache (0 on the first), output.
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    #: The largest request (UTF-8 bytes, a revision's previous answer included) and answer (tokens).
    most_bytes: int
    max_tokens: int
    #: Of it: tokens that the provider adds, and bytes that can be written to a cache.
    added: int
    marked: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """All of a course's calls before the first."""

    rows: tuple[Row, ...]
    #: One rendered request of each kind and each type of lesson, as they will be sent.
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call as it would be sent first."""

    #: outline, entry-07, lesson-07, lesson-07-revision, critic-07.
    name: str
    request: Request
    #: What it is about does not exist yet: the offline author's stands in for it.
    estimated: bool


def prompts_of(asks: Asks, lessons: int, scheme: Sequence[Entry] | None = None) -> Iterator[Prompt]:
    """Yield every call of a course once, and one correction; `scheme`: the real one, where it exists."""
    outline, entries, stand_in = _scheme(asks, lessons, scheme)
    yield Prompt("outline", outline, False)
    digits = max(len(str(lessons)), 2)
    for row in entries:
        yield Prompt(f"entry-{row.order:0{digits}}", asks.entry(entries, row.order), scheme is None)
    for entry in stand_in:
        number = f"{entry.order:0{digits}}"
        yield Prompt(f"lesson-{number}", asks.lesson(stand_in, entry.order), scheme is None)
        if entry is stand_in[0]:
            yield Prompt(f"lesson-{number}-correction", _correction(asks, stand_in, entry), True)
        if asks.blind_solve:
            yield Prompt(f"solve-{number}", _solve(asks, entry), True)
        yield Prompt(f"critic-{number}", _critic(asks, entry), True)


#: What a check may say of a lesson.
_EXAMPLE_FAULT = "c4.q2.answer: 12, but the expression gives 14; wanted the value of the expression"


def _correction(asks: Asks, scheme: Sequence[Entry], entry: Entry) -> Request:
    return asks.correction(scheme, entry.order, {"c4.q2": _text(1_000)}, [_EXAMPLE_FAULT])


def _solve(asks: Asks, entry: Entry) -> Request:
    return asks.solve([{"question": "c4.q2", "ask": _text(round(lesson_bytes(asks.course, entry) * QUESTIONS))}])


def _critic(asks: Asks, entry: Entry) -> Request:
    cards = _text(lesson_bytes(asks.course, entry))
    return asks.critic(entry, {"title": entry.label, "cards": cards}, ["What passed is said here."])


def lesson_bytes(course: Course, entry: Entry) -> int:
    """Return how many bytes the lesson of an entry usually has, from its type and points, or an exam's marks."""
    if entry.lesson_type == "mock_exam":
        papers = [part.marks or 0 for part in course.assessment.components if part.minutes]
        return BYTES_PER_MARK * (sum(papers) or GENERAL_MARKS)
    whole, each = LESSON_BYTES[entry.lesson_type]
    return whole + each * len(entry.points)


def _text(size: int) -> str:
    """Return a text of so many characters, in the place of one that does not exist yet."""
    return ("This part is written later. " * (size // 28 + 1))[:size]


def _scheme(
    asks: Asks, lessons: int, scheme: Sequence[Entry] | None
) -> tuple[Request, list[OutlineEntry], Sequence[Entry]]:
    """Return the request for an outline, the outline and the scheme: as they are, else the offline author's."""
    outline = asks.outline(make_plan(asks.course, lessons))
    if scheme is not None:
        own = set(OutlineEntry.model_fields)
        return outline, [OutlineEntry.model_validate(row.model_dump(include=own)) for row in scheme], scheme
    entries = [OutlineEntry.model_validate(row) for row in answer(outline.data)["entries"]]
    return outline, entries, [_entry(asks, entries, row) for row in entries]


def estimate(asks: Asks, lessons: int, scheme: Sequence[Entry] | None = None) -> Estimate:
    """Return what a course of so many lessons asks for, nothing made yet; `scheme`: the real one, where it exists."""
    outline, entries, scheme = _scheme(asks, lessons, scheme)
    samples = _one_of_each(scheme)
    types = Counter[str](row.lesson_type for row in scheme)
    weights = [types[row.lesson_type] for row in samples]
    entry = [asks.entry(entries, row.order) for row in samples]
    lesson = [asks.lesson(scheme, row.order) for row in samples]
    others = {
        "correction": [_correction(asks, scheme, row) for row in samples],
        "solve": [_solve(asks, row) for row in samples if asks.blind_solve],
        "critic": [_critic(asks, row) for row in samples],
    }
    most = 1 + MAX_REVISIONS
    rows = (
        _row("outline", [outline], 1.1, most, OUTPUT_TOKENS["outline"] + OUTLINE_EACH * lessons),
        _row("entry", entry, 1.05 * lessons, most * lessons, OUTPUT_TOKENS["entry"], weights),
        *_lesson_rows(asks.course, scheme, lesson, types),
        *(
            _row(label, made, TRIES[label] * lessons, MOST[label] * lessons, OUTPUT_TOKENS[label], weights)
            for label, made in others.items()
            if made
        ),
    )
    return Estimate(rows, (outline, *entry, *lesson, *(request for made in others.values() for request in made)))


def _lesson_rows(
    course: Course, scheme: Sequence[Entry], requests: Sequence[Request], types: Mapping[str, int]
) -> Iterator[Row]:
    """Yield lessons, and the mock exam by itself: it may take a longer answer."""
    for exam in (False, True):
        sizes = [lesson_bytes(course, row) for row in scheme if (row.lesson_type == "mock_exam") is exam]
        asked = [request for request in requests if (request.data["entry"]["lesson_type"] == "mock_exam") is exam]
        if asked:
            number, weights = len(sizes), [types[request.data["entry"]["lesson_type"]] for request in asked]
            output = min(round(sum(sizes) / number / BYTES_PER_TOKEN), asked[0].max_tokens - 1)
            yield _row("lesson", asked, TRIES["lesson"] * number, MOST["lesson"] * number, output, weights)


def _entry(asks: Asks, entries: Sequence[OutlineEntry], row: OutlineEntry) -> Entry:
    details = answer(asks.entry(entries, row.order).data)
    return Entry.model_validate({**row.model_dump(), **details})


def _one_of_each(scheme: Iterable[Entry]) -> list[Entry]:
    """Return the last lesson of each type: it has the most before it."""
    return list({row.lesson_type: row for row in scheme}.values())


def _row(
    label: str,
    requests: Sequence[Request],
    calls: float,
    most_calls: int,
    output: int,
    weights: Sequence[int] = (1,),
) -> Row:
    shared = [sum(len(part.text.encode()) for part in request.system) for request in requests]
    sizes = [request.size() for request in requests]
    own = [size - prefix for size, prefix in zip(sizes, shared, strict=True)]
    cap = max(request.max_tokens for request in requests)
    # What it is about stands in it at its longest: an answer not accepted, a lesson that is judged or corrected.
    previous = (MAX_TOKENS["lesson"] if label in OF_LESSONS else cap) * MOST_BYTES_PER_TOKEN
    return Row(
        label,
        calls,
        most_calls,
        round(sum(map(mul, own, weights)) / sum(weights) / BYTES_PER_TOKEN),
        round(sum(map(mul, shared, weights)) / sum(weights) / BYTES_PER_TOKEN),
        output,
        max(sizes) + previous,
        cap,
        # A revision has two turns more.
        max(request.added() for request in requests) + 2 * BLOCK_TOKENS,
        max(request.marked() for request in requests),
    )
