"""How a start ends on screen: the course, time, tokens and dollars; or three lines and an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.cli.errors import EXIT_CODES, exit_code_of, three_lines, word_for
from pipeline.cli.progress.watch import asker, display
from pipeline.cli.streams import quietly
from pipeline.cli.text import PROGRAM, duration, money, money_between, one_line, say, say_json, warn, with_unpriced
from pipeline.cli.where import name_store, store_words_here
from pipeline.engine.events import Listener
from pipeline.errors import ConfigError, ExecutorLost, PipelineError, StoreError
from pipeline.settings import LessonsOptions

if TYPE_CHECKING:
    from pipeline.app import RunResult
    from pipeline.app.start import Amount

Ask = Callable[[str], bool]
#: Ends of an unfinished run that were asked for.
_AS_ASKED = "stopped_as_asked"
#: Nodes that are named at the end of a graph's run.
_MOST_NODES = 40


def watched(options: LessonsOptions, start: Callable[[Listener, Ask | None], RunResult]) -> int:
    """Start something under a display; print how it ended; the exit code."""
    shown = display(quiet=options.quiet, json=options.json)
    try:
        result = start(shown, None if options.yes else asker(shown, json=options.json))
    except PipelineError as error:
        shown.close()
        name_store(error)
        if options.json:
            _tell_error(error)
        raise
    finally:
        shown.close()
    quietly(lambda: show_result(result, as_json=options.json))
    code = result_code(result)
    if code:
        for line in failure_lines(result):
            warn(line)
    return code


def _tell_error(error: PipelineError) -> None:
    """The error as the last object of `--json`."""
    quietly(lambda: say_json({"type": "error", "error": error_json(error), "exit_code": error.exit_code}))


def result_code(result: RunResult) -> int:
    """0 for a run that completed or stopped as asked; else its error's code."""
    if result.status == "completed" or result.detail == _AS_ASKED:
        return 0
    if result.detail == "interrupted" and not isinstance(result.error, (ConfigError, ExecutorLost, StoreError)):
        return EXIT_CODES["RunInterrupted"]
    return exit_code_of(result.error) if result.error is not None else 1


def show_result(result: RunResult, *, as_json: bool) -> None:
    """The final lines of a run that ended well; as JSON, of every run."""
    if as_json:
        say_json(result_json(result))
        return
    if result_code(result):
        return
    say()
    for line in success_lines(result):
        say(line)


def success_lines(result: RunResult) -> list[str]:
    """Where the course is, time, tokens, dollars, the run."""
    lines = []
    if result.published:
        lines.append(f"Published: {result.published}")
    if result.published_note:
        lines.append(result.published_note if result.published else f"Not published now: {result.published_note}")
    if result.left_out:
        lines.append(result.left_out)
    if result.detail == _AS_ASKED:
        lines.append("Stopped as asked; all that was made is kept.")
    if nodes := result.completed_nodes:
        more = f", … ({len(nodes)} in all)" if len(nodes) > _MOST_NODES else ""
        lines.append(f"Completed nodes: {', '.join(nodes[:_MOST_NODES])}{more}")
    spent = spent_text(result.spent)
    lines.append(f"Time: {duration(result.seconds)} · Tokens: {result.tokens:,} · Cost: {spent}")
    if result.expected_usd and result.spent_now_usd is not None:
        off = (result.spent_now_usd / result.expected_usd - 1) * 100
        lines.append(
            f"Expected: {money(result.expected_usd)}; this start cost "
            f"{with_unpriced(money(result.spent_now_usd), result.spent_now.unpriced)} ({off:+.0f} %)"
        )
    lines.append(f"Run: {result.run_id}")
    if result.detail == _AS_ASKED and result.resume_command:
        lines.append(f"Go on: {result.resume_command}")
    return lines


def spent_text(spent: Amount) -> str:
    """Return what was spent: both bounds, and how many calls have no price."""
    return with_unpriced(money_between(spent.low, spent.high), spent.unpriced)


def failure_lines(result: RunResult) -> list[str]:
    """What happened; what is saved and spent, both ends; the command to go on."""
    what = error_message(result.error) or (result.detail or result.status).replace("_", " ")
    kept, advice = kept_in(result.error), hint_of(result.error)
    if is_gone(result.error):
        return _lines_of_gone(result, kept)
    # The last line resumes as before; where that is not enough, the advice stands with what happened.
    if advice and not kept and not advice.startswith("./pipeline.sh"):
        what = f"{what.rstrip('.')}{'' if what.endswith(('?', '!')) else '.'} {advice}"
    saved = f"run {result.run_id}; spent {spent_text(result.spent)}"
    lines = three_lines(what, saved, result.resume_command, word=word_for(result.error, result.detail))
    if kept:
        lines[2:2] = [f"Kept: what the store did not take, in {kept}", f"Hint: {one_line(advice)}"]
    return lines


def _lines_of_gone(result: RunResult, kept: str) -> list[str]:
    """As `failure_lines`, of a run that no command alone goes on with."""
    error = result.error
    assert isinstance(error, PipelineError)
    lines = [
        f"Error: {error_message(error)}",
        f"Spent: {spent_text(result.spent)} by run {result.run_id}",
    ]
    if kept and error.data.get("whole"):
        again = f"{PROGRAM} recover {result.run_id} {shlex.quote(kept)}{store_words_here()}"
        lines.append(f"Kept: all records of the run, in {kept}; if the run is lost, {again} makes it again")
    elif kept:
        lines.append(f"Kept: what the store did not take, in {kept}; going on from this machine takes it in")
    return [*lines, f"Hint: {error.data['gone']}, then: {result.resume_command}"]


def result_json(result: RunResult) -> dict[str, Any]:
    """The last object of `--json`."""
    return {
        "type": "result",
        "run": result.run_id,
        "status": result.status,
        "status_detail": result.detail,
        "error": error_json(result.error),
        "published": result.published or None,
        "published_note": result.published_note or None,
        "left_out": result.left_out or None,
        "seconds": result.seconds,
        "tokens": result.tokens,
        "cost_usd": result.spent.low,
        "cost_usd_at_most": result.spent.most,
        "unpriced_calls": result.spent.unpriced,
        "expected_usd": result.expected_usd,
        "resume_command": None if is_gone(result.error) else result.resume_command or None,
        "completed_nodes": list(result.completed_nodes) or None,
        "exit_code": result_code(result),
    }


def error_message(error: Any) -> str:
    """The message of an exception or of a recorded error."""
    if error is None:
        return ""
    return str(error.get("message", "")) if isinstance(error, Mapping) else one_line(error)


def hint_of(error: Any) -> str:
    """The advice of an exception or of a recorded error; "" if there is none."""
    return str(error.get("hint") or "") if isinstance(error, Mapping) else str(getattr(error, "hint", ""))


def kept_in(error: Any) -> str:
    """The file that holds what the store did not take; "" if there is none."""
    return str(error.data.get("emergency") or "") if isinstance(error, PipelineError) else ""


def is_gone(error: Any) -> bool:
    """Whether the store went away with the run in it."""
    return isinstance(error, PipelineError) and bool(error.data.get("gone"))


def error_json(error: Any) -> Any:
    """Return {"type", "code", "message", "hint"} of an exception; a recorded error as it is."""
    if error is None or isinstance(error, Mapping):
        return error
    words = {name: str(getattr(error, name, "")) for name in ("code", "hint")}
    return {"type": type(error).__name__, "message": one_line(error), **words}
