"""What a course will ask of a model: calls, tokens and largest requests, from prompts rendered beforehand.

Where there is no scheme yet, the offline author's stands in for it, so these are estimates. No prices here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.lessons.asks import MAX_TOKENS, Asks
from pipeline.lessons.author import FORMS, MAX_CORRECTIONS, MAX_REVISIONS, MAX_UNREADABLE
from pipeline.lessons.offline import answer
from pipeline.lessons.plan import make_plan
from pipeline.lessons.schemas import Entry, OutlineEntry
from pipeline.llm.base import BLOCK_TOKENS, Request

#: Bytes of text a token stands for, on average, in prompts like ours.
BYTES_PER_TOKEN = 3.8
#: A token is never more bytes of an answer than this, on average over a whole one.
MOST_BYTES_PER_TOKEN = 6
#: Output tokens of one answer, thinking included, as they usually come. A lesson of schema 2 has some 22,000
#: characters (five lessons of schema 1, written anew); corrections are a few parts of it.
OUTPUT_TOKENS = {"outline": 600, "entry": 400, "lesson": 5_600, "correction": 600, "solve": 450, "critic": 2_000}
#: The outline grows with each lesson; an exam is longer than a lesson.
OUTLINE_EACH, MOCK_TOKENS = 110, 9_000
#: Calls of a kind for each lesson: whole lessons that cannot be read are rare; every second lesson is corrected.
TRIES = {"lesson": 1.02, "correction": 0.5, "solve": 1.1, "critic": 1.1}
#: Calls of a kind for each lesson at most: after each correction it is solved and judged again.
MOST = {
    "lesson": 1 + MAX_UNREADABLE, "correction": MAX_CORRECTIONS, "solve": FORMS * (1 + MAX_CORRECTIONS),
    "critic": FORMS * (1 + MAX_CORRECTIONS),
}  # fmt: skip
#: Kinds of call that carry a lesson, or parts of it.
OF_LESSONS = ("correction", "solve", "critic")
#: A lesson that stands in where none is written yet: characters of it as a whole, and of its questions alone.
STAND_IN, QUESTIONS = 22_000, 3_500


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
            yield Prompt(f"solve-{number}", _solve(asks), True)
        yield Prompt(f"critic-{number}", _critic(asks, entry), True)


#: What a check may say of a lesson.
_EXAMPLE_FAULT = "c4.q2.answer: 12, but the expression gives 14; wanted the value of the expression"


def _correction(asks: Asks, scheme: Sequence[Entry], entry: Entry) -> Request:
    return asks.correction(scheme, entry.order, {"c4.q2": _text(1_000)}, [_EXAMPLE_FAULT])


def _solve(asks: Asks) -> Request:
    return asks.solve([{"question": "c4.q2", "ask": _text(QUESTIONS)}])


def _critic(asks: Asks, entry: Entry) -> Request:
    return asks.critic(entry, {"title": entry.label, "cards": _text(STAND_IN)}, ["What passed is said here."])


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
    entry = [asks.entry(entries, row.order) for row in samples]
    lesson = [asks.lesson(scheme, row.order) for row in samples]
    others = {
        "correction": [_correction(asks, scheme, row) for row in samples],
        "solve": [_solve(asks)] if asks.blind_solve else [],
        "critic": [_critic(asks, row) for row in samples],
    }
    most = 1 + MAX_REVISIONS
    rows = (
        _row("outline", [outline], 1.1, most, OUTPUT_TOKENS["outline"] + OUTLINE_EACH * lessons),
        _row("entry", entry, 1.05 * lessons, most * lessons, OUTPUT_TOKENS["entry"]),
        *_lesson_rows(scheme, lesson),
        *(
            _row(label, made, TRIES[label] * lessons, MOST[label] * lessons, OUTPUT_TOKENS[label])
            for label, made in others.items()
            if made
        ),
    )
    return Estimate(rows, (outline, *entry, *lesson, *(request for made in others.values() for request in made)))


def _lesson_rows(scheme: Sequence[Entry], requests: Sequence[Request]) -> Iterator[Row]:
    """Yield lessons, and the mock exam by itself: it may take a longer answer."""
    for exam in (False, True):
        number = sum((row.lesson_type == "mock_exam") is exam for row in scheme)
        asked = [request for request in requests if (request.data["entry"]["lesson_type"] == "mock_exam") is exam]
        if asked:
            output = MOCK_TOKENS if exam else OUTPUT_TOKENS["lesson"]
            yield _row("lesson", asked, TRIES["lesson"] * number, MOST["lesson"] * number, output)


def _entry(asks: Asks, entries: Sequence[OutlineEntry], row: OutlineEntry) -> Entry:
    details = answer(asks.entry(entries, row.order).data)
    return Entry.model_validate({**row.model_dump(), **details})


def _one_of_each(scheme: Iterable[Entry]) -> list[Entry]:
    """Return the last lesson of each type: it has the most before it."""
    return list({row.lesson_type: row for row in scheme}.values())


def _row(label: str, requests: Sequence[Request], calls: float, most_calls: int, output: int) -> Row:
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
        round(sum(own) / len(own) / BYTES_PER_TOKEN),
        round(sum(shared) / len(shared) / BYTES_PER_TOKEN),
        output,
        max(sizes) + previous,
        cap,
        # A revision has two turns more.
        max(request.added() for request in requests) + 2 * BLOCK_TOKENS,
        max(request.marked() for request in requests),
    )
