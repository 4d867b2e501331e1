"""What is to be done about a run: what happened, what is saved, and the one step that helps, with its command."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.app.gates import open_gates
from pipeline.app.review import decided_since, undecided
from pipeline.app.run_list import RunRow, row_of, way_on
from pipeline.app.run_status import interruptions
from pipeline.app.run_trail import CUT_OFF, REUSED, Items, open_word
from pipeline.app.start import published_now, settings_now
from pipeline.app.words import count, money, one_line
from pipeline.engine.people import standings
from pipeline.errors import PipelineError
from pipeline.publish.folder import FolderPublisher
from pipeline.records.redaction import without_secrets
from pipeline.records.reviews import DECIDED
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED
from pipeline.settings import Execution
from pipeline.store.address import store_words
from pipeline.store.base import Head, Store
from pipeline.store.reader import COURSES, LESSONS, load

#: What helps: resume, resume with what failed, resume under a higher ceiling, answer a question, review lessons.
RESUME, RETRY, RAISE, ANSWER, REVIEW = "resume", "retry", "raise", "answer", "review"
#: Publish again what another run's course has replaced.
PUBLISH = "publish"


def advice(place: Store, url: str | None, head: Head, state: RunState, items: Items | None) -> dict[str, Any]:
    """Return the message about a run; {} where nothing is to be done.

    Args:
        url: The store as it was named; for commands.
        items: Of the visit that was worked on last.
    """
    row = row_of(head)
    if row.status == COMPLETED and not head.owned and (gone := _not_published(state)):
        return _message(gone, state, button=PUBLISH, command=way_on(row, url, " --from publish"))
    if head.owned or (row.status == COMPLETED and not _left_out(state) and not decided_since(state)):
        return _message(_question(state), state, button=ANSWER) if state.questions else {}
    if row.status == COMPLETED and decided_since(state):
        text = "Lessons were reviewed since it was published; a resume makes anew what is to be redone, and publishes."
        return _message(text, state, button=RESUME, command=way_on(row, url))
    if row.status == COMPLETED:
        text = f"{count(_left_out(state), 'lesson')} failed and will be missing."
        return _message(text, state, button=RETRY, command=way_on(row, url, " --retry-failed"))
    found = _message(_happened(head, state), state, saved=_saved(state, items), cost=_open_cost(state))
    if not row.resumable:
        return found
    unknown = [each.name for each in interruptions(place, state)]
    found |= {"command": way_on(row, url, " --retry-unknown" if unknown else ""), "unknown": unknown}
    if unknown:
        return found | {"done": f"./pipeline.sh mark-done {state.run_id} {unknown[0]}{store_words(url) if url else ''}"}
    return found | _button(row, state, str(found["command"]))


def _button(row: RunRow, state: RunState, command: str) -> dict[str, str]:
    """Return the button that helps an unfinished run, and what it changes in the message."""
    if state.questions:
        return {"button": ANSWER}
    if state.detail == "paused_budget":
        return {"button": RAISE, "room": command.partition(" --max-cost-usd ")[2].partition(" ")[0]}
    if row.needs:
        return {"cost": f"{row.needs} is never stored: resume it at a terminal, where you give it again."}
    if state.detail != "waiting_for_human" or state.pipeline != COURSES:
        return {"button": RESUME}
    if undecided(state):
        return {"button": REVIEW}
    return {"button": RESUME, "text": "Every lesson is approved or edited: a resume publishes the course."}


def _message(text: str, state: RunState, **more: str) -> dict[str, Any]:
    empty = dict.fromkeys(("saved", "cost", "button", "command", "room", "done"), "")
    return {"text": without_secrets(text), **empty, "questions": len(state.questions), "unknown": [], **more}


def _question(state: RunState) -> str:
    gate = open_gates(state)[0]
    return f"{gate.gate} asks: {one_line(gate.text, 300)}"


def _left_out(state: RunState) -> int:
    """Return how many lessons a completed course is without because they failed."""
    step = state.steps.get(LESSONS) if state.pipeline == COURSES else None
    return int(step.outputs.get("failed") or 0) if step is not None else 0


def _not_published(state: RunState) -> str:
    """Return why the course of a completed run is not what is published now; "" where it is, or is no course."""
    step = state.steps.get("publish#1")
    out = state.execution.get("out")
    if state.pipeline != COURSES or not out or step is None or not step.outputs.get("content_hash"):
        return ""
    if decided_since(state):
        return ""
    folder = Path(str(out), str(step.outputs.get("path")))
    there, note = published_now(FolderPublisher(folder.parent), step.outputs, folder, "the button")
    return "" if there else f"Not published now: {note}"


def replaced_course(place: Store, execution: Execution, recorded: Mapping[str, Any], name: str, run: str = "") -> str:
    """Return that a run will publish over a course of another one that people reviewed; "" where it will not.

    Args:
        recorded: Settings that the run has already.
        name: What it publishes ("course_c84775").
        run: Its id, where it has one.
    """
    how = settings_now(execution, recorded)
    there = FolderPublisher(Path(how["out"])).standing(name)
    if there is None or there.run in ("", run) or there.run_hash != there.content_hash or (
        how["until"] not in (None, "publish") or how["sample"] is not None
    ):  # fmt: skip
        return ""
    try:
        found = standings(load(place, there.run), LESSONS).values()
    except PipelineError:
        # A run of another store, or one that was deleted.
        return ""
    number = sum(each.status in DECIDED for each in found)
    return (
        f"It will be published over {name}, where run {there.run} stands with {count(number, 'lesson')} that people "
        f"reviewed; the page of that run can publish it again."
    ) if number else ""  # fmt: skip


def _happened(head: Head, state: RunState) -> str:
    if head.corrupt:
        return head.corrupt
    if open_word(state, owned=False) == CUT_OFF:
        return "The process that worked on it is gone: it ended without a word, killed or by a loss of power."
    if state.questions:
        return _question(state)
    said, hint = (one_line((state.error or {}).get(name, ""), 500) for name in ("message", "hint"))
    said = said.replace("Interrupted (", "Stopped on request (") if state.detail == "interrupted" else said
    return (
        f"{said} {hint}".replace(" RUN`", f" {state.run_id}`").strip()
        or f"It is {(state.detail or state.status).replace('_', ' ')}."
    )


def _saved(state: RunState, items: Items | None) -> str:
    done = sum(word in (COMPLETED, REUSED) for word in items.words) if items else 0
    made = f", {done:,} of {len(items.words):,} items of {bare(items.path)} among it" if items else ""
    return f"Saved: everything up to record {state.seq:,}{made}. A resume repeats none of it."


def _open_cost(state: RunState) -> str:
    """Return what asking again may cost twice."""
    calls = len(state.open_calls)
    if not calls:
        return ""
    worst = sum((call.worst or Decimal(0) for call in state.open_calls.values()), Decimal(0))
    they = "call has no recorded answer; it" if calls == 1 else "calls have no recorded answer; they"
    return f"{calls:,} {they} may have cost up to {money(worst)} and will be asked again."
