"""The files of a published course: pages, style sheet, data; the same bundle gives the same bytes.

Here are the pages about the whole course: its index, its scheme of work, and who wrote and checked it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from pipeline.frameworks import standing
from pipeline.html import Html, clean, count, el, join, section
from pipeline.publish import answers_page, data, lesson_page
from pipeline.publish.answers_page import solved_line
from pipeline.publish.base import Bundle
from pipeline.publish.figures import group_row, row, table
from pipeline.publish.page import ABOUT, DOWNLOADS, INDEX, SCHEME, Page, by_line, frame, link
from pipeline.publish.prose import inline
from pipeline.publish.questions import COMPUTED, NOBODY, PARTLY
from pipeline.publish.view import TYPES, CourseGroup, CourseView, LearningOutcome, LessonView, counts
from pipeline.records.values import value_hash

STYLE = "site.css"
#: Digits of a hash that a person compares.
_SHORT = 16


def build(bundle: Bundle) -> dict[str, bytes]:
    """Return {path below the published folder: bytes}; the manifest is not among them."""
    view = CourseView(bundle)
    made = {page.path: frame(view, page) for page in pages(view)}
    made[STYLE] = files("pipeline.publish").joinpath(STYLE).read_bytes()
    made.update(data.build(view))
    made.update({f"{DOWNLOADS}/{each.path}": each.data for each in bundle.downloads})
    return made


def pages(view: CourseView) -> list[Page]:
    """Return every page of the course."""
    lessons = [
        page for lesson in view.lessons for page in (lesson_page.build(view, lesson), answers_page.build(view, lesson))
    ]
    return [index(view), scheme(view), about(view), answers_page.index(view), *lessons]


# --- what is taught, topic by topic, and where ------------------------------------------------------


def index(view: CourseView) -> Page:
    """Return the course index."""
    partial = "Partial course: " if view.taught < len(view.outcomes) else ""
    made = count(len(view.lessons), "lesson")
    lede = (
        f"{partial}{made} with explanations, worked examples and questions; answers stand on pages of their own."
        if view.lessons
        else f"A plan of {count(len(view.entries), 'lesson')}; none of them is written yet."
    )
    body = join(
        [
            el("p", line, cls="code") if (line := _code_line(view)) else None,
            el("h1", view.title),
            el("p", lede, cls="lede"),
            _coverage(view),
            [_group(group) for group in view.groups if not group.cross_cutting],
            _other_lessons(view),
            [_cross_cutting(view, group) for group in view.groups if group.cross_cutting],
            _not_covered(view),
            _failed(view),
        ]
    )
    return Page(INDEX, view.title, body)


def _code_line(view: CourseView) -> str:
    """Return code, level and credits, as a teacher looks for them."""
    return " · ".join(clean(part) for part in standing(view.bundle.course) if part)


def _coverage(view: CourseView) -> Html:
    segments: list[Html] = []
    for group in view.groups:
        for place, outcome in enumerate(() if group.cross_cutting else group.outcomes):
            names = " ".join(name for name, on in (("first", place == 0), ("on", bool(outcome.lessons))) if on)
            segments.append(el("span", cls=names or None))
    total, missing = len(view.outcomes), len(view.outcomes) - view.taught
    have = "outcome has" if missing == 1 else "outcomes have"
    sentence = f"Partial course: {missing} {have} no lesson yet." if missing else "Every outcome has a lesson."
    heading = el("h2", f"{view.taught} of {count(total, 'outcome')} taught")
    return join([heading, el("div", segments, cls="bar", aria_hidden="true"), el("p", sentence)])


def _group(group: CourseGroup) -> Html | None:
    if not group.outcomes:
        return None
    anchor, taught = f"g-{group.id}", sum(outcome.taught for outcome in group.outcomes)
    said = el("p", f"{taught} of {count(len(group.outcomes), 'outcome')}", cls="muted")
    head = el("div", el("h2", group.title, id=anchor), said, cls="topic-head")
    rows = [_outcome(outcome) for outcome in group.outcomes]
    return el("section", head, el("ul", rows, cls="outcomes"), aria_labelledby=anchor)


def _outcome(outcome: LearningOutcome) -> Html:
    title = _numbered(outcome)
    missing = [el("li", el("p", words, cls="muted")) for words in outcome.missing]
    if not outcome.lessons and not missing:
        return el("li", title, el("p", "No lesson yet", cls="muted"))
    return el("li", title, el("ul", [_lesson_item(lesson) for lesson in outcome.lessons], missing, cls="lessons"))


def _numbered(outcome: LearningOutcome) -> Html:
    return el("p", el("span", outcome.number, cls="num"), inline(outcome.title))


def _lesson_item(lesson: LessonView) -> Html:
    words = join([f"{lesson.type} {lesson.order}: ", inline(lesson.title)])
    return el("li", el("a", words, href=link(INDEX, f"lessons/{lesson.file}.html")))


def _other_lessons(view: CourseView) -> Html | None:
    """Return the lessons that no outcome lists above: practice, revision, assessments."""
    listed = {lesson.order for outcome in view.outcomes for lesson in outcome.lessons}
    items = [_lesson_item(lesson) for lesson in view.lessons if lesson.order not in listed]
    return (
        section("other", view.region.said("Practice, revision and assessment"), el("ul", items, cls="lessons"))
        if items
        else None
    )


def _cross_cutting(view: CourseView, group: CourseGroup) -> Html:
    rows = []
    for outcome in group.outcomes:
        used = [lesson.order for lesson in view.lessons if outcome.id in lesson.entry.get("cross_cutting", ())]
        where = f"{view.region.said('Practised')} in lessons {ranges(used)}." if used else "In no lesson yet."
        rows.append(el("li", el("p", inline(outcome.title)), el("p", where, cls="muted")))
    return section(f"g-{group.id}", f"Cross-cutting skills: {group.title}", el("ul", rows, cls="outcomes"))


def ranges(numbers: Sequence[int]) -> str:
    """Return 1–3, 5, 8–9 for [1, 2, 3, 5, 8, 9]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _not_covered(view: CourseView) -> Html | None:
    left = [outcome for outcome in view.outcomes if not outcome.taught and not outcome.missing]
    rows = [el("li", _numbered(outcome), cls="wide") for outcome in left]
    words = el("p", "This course does not reach these outcomes. They are listed in teaching order.")
    return section("not-covered", "Not covered", words, el("ul", rows, cls="outcomes")) if rows else None


def _failed(view: CourseView) -> Html | None:
    rows = []
    for failed in view.failed:
        name = join([f"Lesson {failed['order']}: ", inline(failed.get("label") or "untitled")])
        reason = clean(failed.get("reason") or "no reason recorded")
        rows.append(el("li", el("p", name), el("p", reason, cls="muted")))
    words = el("p", "These lessons did not pass their checks, so they are not here.")
    return section("failed", "Lessons that failed", words, el("ul", rows, cls="outcomes")) if rows else None


# --- all lessons in teaching order ------------------------------------------------------------------

_COLUMNS = ("No", "Lesson", "Type", "Minutes")
_MINUTES = len(_COLUMNS) - 1
#: Outcomes named in a row.
_FEW = 6


def scheme(view: CourseView) -> Page:
    """Return the scheme of work: one table."""
    title = view.region.said("Scheme of work")
    entries = list(view.entries.values())
    bodies = []
    for block, rows in groupby(entries, key=lambda entry: clean(entry.get("block", ""))):
        members = list(rows)
        head = join([inline(block or "Lessons"), el("span", _hours(members), cls="sub")])
        bodies.append(el("tbody", group_row(head, len(_COLUMNS)), [_entry(view, entry) for entry in members]))
    foot = el("tr", el("th", "Total", scope="row", colspan=_MINUTES), el("td", _hours(entries), cls="r"))
    lede = el("p", f"{count(len(entries), 'lesson')} in teaching order.", cls="lede")
    body = [
        el("h1", title), lede, table("Lessons by block", _COLUMNS, bodies, foot=foot, right=_MINUTES)
    ]  # fmt: skip
    return Page(SCHEME, title, join(body))


def _hours(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the minutes of lessons as hours: 90 → "1.5 h"."""
    minutes = sum(int(entry.get("minutes", 0)) for entry in entries)
    return f"{minutes / 60:.1f}".removesuffix(".0") + "\u202fh"


def _entry(view: CourseView, entry: Mapping[str, Any]) -> Html:
    order = int(entry["order"])
    found = next((lesson for lesson in view.lessons if lesson.order == order), None)
    if found:
        name: object = el("a", inline(found.title), href=f"lessons/{found.file}.html")
    else:
        why = "not written yet" if order in view.unwritten else "not in this course"
        name = join([inline(entry.get("label", "")), f" ({why})"])
    numbers = [view.outcome_names.get(ref, ref).split(" ")[0] for ref in entry.get("outcome_refs", ())]
    codes = ", ".join(clean(number) for number in numbers[:_FEW])
    codes += f" and {len(numbers) - _FEW} more" if len(numbers) > _FEW else ""
    kind = view.region.said(TYPES.get(entry.get("lesson_type", ""), "Lesson"))
    return row(order, join([name, el("span", codes, cls="sub")]), kind, entry.get("minutes", ""), right=_MINUTES)


# --- who wrote it, what code checked, what a critic scored, and what nobody checked -----------------


def about(view: CourseView) -> Page:
    """Return the page about the course."""
    parts: list[tuple[str, str, object]] = [
        ("made", "How it was made", el("dl", list(_made(view)), cls="facts")),
        ("checked", "What was checked", _checked(view) if view.lessons else None),
        ("scores", "Lesson by lesson", _scores(view) if view.lessons else None),
        ("warnings", "Warnings of the checks", _warnings(view)),
        ("nobody", "What nobody checked", _nobody(view)),
        ("sources", "Where the course facts come from", _sources(view)),
        ("mistakes", view.region.said("Licence and mistakes"), _mistakes(view)),
    ]
    sections = [section(anchor, title, content) for anchor, title, content in parts if content]
    body = join([el("h1", "About this course"), el("p", by_line(view), cls="lede"), sections])
    return Page(ABOUT, "About this course", body)


def _made(view: CourseView) -> Iterator[Html]:
    about = view.bundle.about
    prompts = about.get("prompts") or {}
    catalogue = about.get("catalogue") or view.bundle.scheme.get("catalogue", "")
    rows: list[tuple[str, object]] = [
        ("Author", "Offline author: a program, no model" if view.offline else clean(about.get("model") or "a model")),
        ("Critic", clean(about.get("critic") or "") or ("the author's model" if view.scored else "none")),
        ("Effort", clean(about.get("effort") or "")),
        ("Course file", el("code", clean(catalogue)[:_SHORT]) if catalogue else ""),
        ("Prompt set", el("code", value_hash(prompts)[:_SHORT]) if prompts else ""),
        ("Read by", _signed(view)),
    ]
    for name, value in rows:
        if value:
            yield el("dt", name)
            yield el("dd", value)


def _signed(view: CourseView) -> str:
    if view.signed:
        changes = view.bundle.about["sign_off"].get("changes")
        return view.signed + (f"; changes: {clean(changes)}" if changes else "")
    if view.reviewed:
        return f"{view.reviewed} of {count(len(view.lessons), 'lesson')} reviewed; the others are not reviewed"
    return "Not reviewed: no teacher has read this"


def _checked(view: CourseView) -> Html:
    found = counts(view.lessons)
    total = sum(found.values())
    kinds = (("Checked by calculation", COMPUTED), ("Checked by calculation in part", PARTLY))
    calculated = [(name, found[kind]) for name, kind in kinds] if found[COMPUTED] + found[PARTLY] else []
    rows = [
        row(name, number, right=1)
        for name, number in (("Questions", total), *calculated, ("Not checked by code", found[NOBODY]))
    ]
    sentence = view.region.said(
        f"{found[COMPUTED]} of {count(total, 'question')} were checked by calculation: code read all mathematics that "
        "is printed for them, answers, working and marks, and compared it with the numbers of the question."
        if calculated
        else f"No answer to the {count(total, 'question')} is a calculation for code to check: a person judges them."
    )
    also = view.region.said(
        "Code also checked that lessons refer only to outcomes of the course, that marks add up and that no lesson "
        f"asks a question twice. {solved_line(view.lessons)}"
    )
    # A place of the right option that is always the same gives the answer away.
    keys = [question.key for lesson in view.lessons for question in lesson.questions]
    places = Counter(key.letter for key in keys if key)
    listed = ", ".join(f"{place} {places[place]}" for place in sorted(places))
    return join(
        [
            el("p", sentence),
            el("p", also),
            table("Questions by check", ("What", "Number"), [el("tbody", rows)], right=1),
            el("p", f"Right options by place: {listed}.") if places else None,
        ]
    )


def _scores(view: CourseView) -> Html:
    criteria = ["fidelity", "quality"] if view.scored else []
    read = ["Reviewed by"] if view.reviewed else []
    rows = []
    for lesson in view.lessons:
        found = counts([lesson])
        name = el("a", inline(lesson.title), href=f"lessons/{lesson.file}.html")
        scores = [lesson.score(criterion) for criterion in criteria]
        readers = [lesson.readers + (" (edited)" if lesson.review.get("edited") else "") or "–"] if read else []
        rows.append(row(lesson.order, name, sum(found.values()), found[NOBODY] + found[PARTLY], *scores, *readers))
    rules = {clean((lesson.critic or {}).get("rule", "")) for lesson in view.lessons}
    scored = f"A critic model scored each lesson; code decided. {' '.join(sorted(rules))}"
    unread = "" if read else ": nobody has read them"
    words = scored if criteria else f"No critic scored these lessons{unread}."
    head = ["No", "Lesson", "Questions", "Need a person", *(criterion.capitalize() for criterion in criteria), *read]
    return join([el("p", words), table("Lessons and their checks", head, [el("tbody", rows)])])


def _warnings(view: CourseView) -> Html | None:
    rows = []
    for lesson in view.lessons:
        if lesson.warnings:
            where = el("a", f"Lesson {lesson.order}", href=f"answers/{lesson.file}.html#review")
            rows.append(el("li", where, f": {count(len(lesson.warnings), 'warning')}"))
    return el("ul", rows) if rows else None


def _nobody(view: CourseView) -> Html:
    rows = [
        "Whether the explanations are the best for your class.",
        "Statements of fact in words, and pictures described in words.",
        "Questions marked as not checked by code.",
    ]
    if not view.scored and view.reviewed < len(view.lessons):
        rows.insert(0, "The reading of any lesson from start to end: no person and no second model has done it.")
    return el("ul", [el("li", words) for words in rows])


def _sources(view: CourseView) -> Html | None:
    rows = []
    for source in view.bundle.course.get("sources") or ():
        states = {True: "compared with the source", "partly": "compared in part"}
        state = states.get(source.get("verified"), "not compared with a source")
        covers = "; ".join(clean(part) for part in source.get("covers") or ())
        rows.append(el("li", clean(source.get("ref", "")), f": {covers} ({state})" if covers else f" ({state})"))
    return el("ul", rows) if rows else None


def _mistakes(view: CourseView) -> Html:
    stated = view.bundle.course.get("licence")
    ask = None if stated else " Ask whoever published the course before you share it."
    report = (
        "To report a mistake, tell whoever gave you this course the lesson number, the question number and what is "
        "wrong. The files under data hold the same lessons for tools, and manifest.json their hashes."
    )
    return join([el("p", view.rights_line, ask), el("p", report)])
