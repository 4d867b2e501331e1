"""How a start ends on screen: the course, time, tokens and dollars; or three lines and an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pipeline.app.words import duration, money, one_line, spent_text, with_unpriced
from pipeline.cli.displays import asker, display, traced
from pipeline.cli.errors import error_json, word_for
from pipeline.cli.options import name_store, store_words_here
from pipeline.cli.text import PROGRAM, quietly, say, say_json, warn
from pipeline.engine.events import Listener
from pipeline.errors import PipelineError
from pipeline.settings import Display, Execution

if TYPE_CHECKING:
    from pipeline.app.start import RunReport

Ask = Callable[[str], bool]
#: What is started: it is given a listener, and how to ask a person.
Starter = Callable[[Listener, Ask | None], "RunReport"]
_AS_REQUESTED = "stopped_as_asked"
#: Nodes that are named at the end of a graph's run.
_MOST_NODES = 40


def watched(execution: Execution, how: Display, start: Starter) -> int:
    """Start something under a display, print how it ended, and return the exit code."""
    # The rest of the traces is sent once all is printed.
    with ExitStack() as sent:
        shown = display(quiet=how.quiet, json=how.json)
        try:
            shown = sent.enter_context(traced(execution, how, shown))
            report = start(shown, None if execution.yes else asker(shown, json=how.json))
        except PipelineError as error:
            shown.close()
            name_store(error)
            if how.json:
                last = {"type": "error", "error": error_json(error), "exit_code": error.exit_code}
                quietly(lambda: say_json(last))
            raise
        finally:
            shown.close()
        return _show_end(report, how)


def _show_end(report: RunReport, how: Display) -> int:
    """Print how it ended; return the exit code."""
    code = report.result.exit_code
    if report.result.error is not None:
        name_store(report.result.error)
    if how.json:
        quietly(lambda: say_json(report_json(report)))
    elif not code:
        quietly(lambda: say("\n".join(["", *success_lines(report)])))
    for line in failure_lines(report) if code else ():
        warn(line)
    return code


def success_lines(report: RunReport) -> list[str]:
    """Return where the course is, time, tokens, dollars, the run."""
    result, lines = report.result, []
    if report.published:
        lines.append(f"Published: {report.published}")
    if note := report.published_note:
        lines.append(note if report.published else f"Not published now: {note}")
    if report.left_out:
        lines.append(report.left_out)
    if result.detail == _AS_REQUESTED:
        lines.append("Stopped as requested; everything made so far is kept.")
    if nodes := report.completed_nodes:
        more = f", … ({len(nodes)} in all)" if len(nodes) > _MOST_NODES else ""
        lines.append(f"Completed nodes: {', '.join(nodes[:_MOST_NODES])}{more}")
    tokens, spent = sum(result.spent.tokens.values()), spent_text(result.spent)
    lines.append(f"Time: {duration(result.seconds)} · Tokens: {tokens:,} · Cost: {spent}")
    if report.expected_usd:
        now = report.spent_now
        off = (now.usd / report.expected_usd - 1) * 100
        cost = with_unpriced(money(now.usd), now.unpriced)
        lines.append(f"Expected: {money(report.expected_usd)}; spent by this command: {cost} ({off:+.0f} %)")
    lines.append(f"Run: {result.run_id}")
    if result.detail == _AS_REQUESTED and report.resume_command:
        lines.append(f"Resume: {report.resume_command}")
    return lines


def failure_lines(report: RunReport) -> list[str]:
    """Return what happened; what is saved and spent, both ends; the command that resumes."""
    result, error = report.result, report.result.error
    what = one_line(error) if error is not None else (result.detail or result.status).replace("_", " ")
    hint, data = (error.hint, error.data) if error is not None else ("", {})
    kept, spent = str(data.get("emergency") or ""), spent_text(result.spent)
    if data.get("gone"):
        # The store went away with the run in it: no command alone resumes it.
        lines = [f"Error: {what}", f"Spent: {spent} by run {result.run_id}"]
        if kept and data.get("whole"):
            again = f"{PROGRAM} recover {result.run_id} {shlex.quote(kept)}{store_words_here()}"
            lines.append(f"Kept: all records of the run, in {kept}; if the run is lost, {again} restores it")
        elif kept:
            lines.append(f"Kept: records that the store did not accept, in {kept}; resuming on this machine adds them")
        return [*lines, f"Hint: {data['gone']}, then: {report.resume_command}"]
    # The last line resumes as before; where that is not enough, the hint follows what happened.
    if hint and not kept and not (error is not None and error.command):
        what = f"{what.rstrip('.')}{'' if what.endswith(('?', '!')) else '.'} {hint}"
    lines = [f"{word_for(error, result.detail)}: {one_line(what)}", f"Saved: run {result.run_id}; spent {spent}"]
    if kept:
        lines += [f"Kept: records that the store did not accept, in {kept}", f"Hint: {one_line(hint)}"]
    return [*lines, f"Resume: {one_line(report.resume_command)}"] if report.resume_command else lines


def report_json(report: RunReport) -> dict[str, Any]:
    """Return the last object of `--json`."""
    result, spent = report.result, report.result.spent
    low = spent.usd + spent.low
    unknown = spent.unbounded or spent.unpriced
    gone = result.error is not None and result.error.data.get("gone")
    return {
        "type": "result",
        "run": result.run_id,
        "status": result.status,
        "status_detail": result.detail,
        "error": error_json(result.error),
        "published": report.published or None,
        "published_note": report.published_note or None,
        "left_out": report.left_out or None,
        "seconds": result.seconds,
        "tokens": sum(spent.tokens.values()),
        "cost_usd": low,
        "cost_usd_at_most": None if unknown else max(low, spent.usd + spent.high),
        "unpriced_calls": spent.unpriced,
        "expected_usd": report.expected_usd,
        "resume_command": None if gone else report.resume_command or None,
        "completed_nodes": list(report.completed_nodes) or None,
        "exit_code": result.exit_code,
    }
