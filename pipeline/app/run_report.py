"""How a start ended, with what a person is told beside it: what was published, and the command that resumes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.start import Start, store_words_of
from pipeline.engine.ceiling import more_room
from pipeline.engine.result import RunResult
from pipeline.engine.sources import missing_param
from pipeline.errors import NeedsConfirmation, WriteFailed
from pipeline.records.run import RunState, Spend
from pipeline.records.statuses import COMPLETED

if TYPE_CHECKING:
    from pipeline.dot.model import DotGraph
    from pipeline.engine.setup import Setup
    from pipeline.publish.base import Publisher

#: Files changed by hand that are named; parameters that are suggested where none is like the one given.
_NAMED, _SUGGESTED = 5, 10
_PARAMS = "params."


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of one start or resume."""

    result: RunResult
    #: "" where nothing is left to do.
    resume_command: str = ""
    #: Folder of the published course; "" if it was not published, or holds another run's course.
    published: str = ""
    #: What was replaced in the published folder, or what it holds now.
    published_note: str = ""
    #: Of a completed course: the lessons that are missing from it.
    left_out: str = ""
    #: What this start was expected to cost before it began; None: no estimate was made.
    expected_usd: Decimal | None = None
    #: Of a DOT graph: its nodes in order of their ends.
    completed_nodes: tuple[str, ...] = ()

    @property
    def spent_now(self) -> Spend:
        """Return what this start has spent."""
        return self.result.spent_now if self.result.worked else Spend()


def finish(start: Start, setup: Setup, result: RunResult, verb: str = "lessons") -> RunReport:
    """Close what the run worked with, write the receipt beside what was published, and return the report."""
    if setup.model is not None:
        try:
            setup.model.close()
        except Exception as fault:
            # A model of the user's own may fail here: all that it answered is recorded.
            start.emit("note", text=f"The model's close() failed: {type(fault).__name__}.")
    again = setup.command(result.run_id)
    error, done = result.error, result.status == COMPLETED
    if isinstance(error, WriteFailed) and error.data.get("emergency") and not error.data.get("gone"):
        # The store does not know how it was named.
        command = f"./pipeline.sh recover {result.run_id} {error.data['emergency']}{store_words_of(start.execution)}"
        error.hint = f"Resuming on this machine adds what was kept; on another one, first: {command}"
    outputs = result.outputs.get("publish") or {}
    published = note = left_out = ""
    if verb == "lessons" and outputs.get("path"):
        published = str(Path(setup.options["out"], str(outputs["path"])))
        if done and result.worked:
            publisher = setup.services["publisher"]
            note = _replaced(publisher, result.run_id, outputs)
            publisher.receipt(str(outputs["path"]), _receipt(result))
    failed = int((result.outputs.get("lessons") or {}).get("failed") or 0)
    if verb == "lessons" and done and failed:
        which = "1 lesson failed and is" if failed == 1 else f"{failed} lessons failed and are"
        left_out = f"{which} left out; {again} --retry-failed tries again."
    # Without it a resume would ask again what a person has just been asked.
    confirmed = " --retry-unknown" if isinstance(error, NeedsConfirmation) else ""
    return RunReport(
        result,
        "" if done else f"{again}{more_room(error)}{missing_param(error)}{confirmed}{setup.again}",
        published,
        note,
        left_out,
        start.expected if done and result.worked else None,
    )


def _receipt(result: RunResult) -> dict[str, Any]:
    """Return what is kept beside a published course, outside its hash: run, money and time."""
    spent = result.spent
    low = spent.usd + spent.low
    unknown = spent.unbounded or spent.unpriced
    return {
        "run_id": result.run_id,
        "content_hash": result.outputs["publish"].get("content_hash"),
        "cost_usd": float(low),
        "cost_usd_at_most": None if unknown else float(max(low, spent.usd + spent.high)),
        "tokens": dict(spent.tokens),
        "calls": spent.calls,
        "active_seconds": round(result.seconds, 3),
    }


def _replaced(publisher: Publisher, run: str, outputs: Mapping[str, Any]) -> str:
    """Return which other run's course was replaced; asked before the run's own receipt is written."""
    there = publisher.standing(str(outputs["path"]))
    if there is None or there.run in ("", run) or there.run_hash == outputs.get("content_hash"):
        return ""
    kept = "; that version is kept in .versions until the next one" if there.kept else ""
    return f"It replaces what run {there.run} had published there{kept}."


def published_now(publisher: Publisher, outputs: Mapping[str, Any], folder: Path, again: str) -> tuple[bool, str]:
    """Return whether a completed run's course is what is published now, and a note on it.

    Args:
        outputs: Of the run's publish step.
        again: The command that publishes it again.
    """
    there = publisher.standing(str(outputs.get("path")))
    if there is None:
        return False, f"{folder} is gone; {again} publishes it again."
    if there.content_hash and there.content_hash != outputs.get("content_hash"):
        other = f"run {there.run}" if there.run and there.run_hash == there.content_hash else "another run"
        return False, f"{folder} holds what {other} published since; {again} publishes this one again."
    named = ", ".join(there.edited[:_NAMED]) + (", …" if len(there.edited) > _NAMED else "")
    return True, f"Changed by hand since: {named}." if named else ""


# --- parameters that are given and never read: most are misspelt -----------------------------------


def unnamed_params(params: Iterable[str], graph: DotGraph) -> list[str]:
    """Return a sentence for each parameter that nothing in a graph names."""
    from pipeline.dot.names import names_in

    names = names_in(graph)
    strange = [name for name in params if name not in names and name.removeprefix("graph.") not in graph.attributes]
    return [f"Nothing in the graph uses the parameter {name!r}{_instead(name, names)}" for name in strange]


def unread_params(state: RunState) -> list[str]:
    """Return a sentence for each parameter of a completed run that no step has read."""
    from pipeline.travel.overrides import names_read

    names = {name.removeprefix(_PARAMS) for name in names_read(state) if name.startswith(_PARAMS)}
    return [f"No step has read the parameter {name!r}{_instead(name, names)}"
            for name in state.params if name not in names]  # fmt: skip


def _instead(name: str, names: Collection[str]) -> str:
    """Return the names that may have been meant."""
    from difflib import get_close_matches

    if near := get_close_matches(name, names, 3, 0.6):
        return f"; did you mean {' or '.join(near)}?"
    return f". Known names: {', '.join(sorted(names)[:_SUGGESTED])}." if names else "."
