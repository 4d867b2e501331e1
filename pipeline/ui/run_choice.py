"""Many runs chosen on the page of runs: what stopping, resuming or deleting them means, and doing it one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pipeline.app import processes
from pipeline.app.batches import batches
from pipeline.app.batches import cancel as cancel_batches
from pipeline.app.removals import removal_lines, removals, remove
from pipeline.app.run_index import word_of
from pipeline.app.run_list import RunRow, resume_arguments, row_of
from pipeline.app.stores import open_account
from pipeline.errors import ConfigError, PipelineError, RunNotFound
from pipeline.store.retention import Removal
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data

#: Runs that one form takes, and of these so many as processes at once.
MOST, MOST_PROCESSES = 100, 10
Ended = Iterator[tuple[str, PipelineError | None]]


def asked_for(desk: Desk, act: str, runs: Sequence[str]) -> Data | None:
    """Return what an act means for each of the chosen runs, before it is done; None: no act is asked for."""
    said = {"stop": _stopping, "resume": _resuming, "delete": _deleting}.get(act)
    if said is None:
        return None
    chosen, most = list(dict.fromkeys(runs)), MOST_PROCESSES if act == "resume" else MOST
    shown, refused = [], []
    batch_count = 0
    for run in chosen[:most]:
        try:
            row = row_of(desk.head(run))
            lines, out = said(desk, row)
        except PipelineError as error:
            refused.append({"run": run, "why": error.message})
            continue
        batch_count += out
        shown.append({"run": run, "word": word_of(row), "lines": lines})
    return {
        "act": act, "runs": shown, "refused": refused, "batches": batch_count, "most": most,
        "left_out": max(len(chosen) - most, 0),
    }  # fmt: skip


def _stopping(desk: Desk, row: RunRow) -> tuple[list[str], int]:
    out = sum(batch.status == "out" for batch in batches(desk.store(), row.run_id))
    if not row.owned and not out:
        raise PipelineError(f"It is not running ({word_of(row)}).", code="run_not_running")
    lines = [] if row.owned else ["no process works on it"]
    if out:
        lines.append(f"{out} batch{'es' if out > 1 else ''} at the provider")
    return lines, out


def _resuming(desk: Desk, row: RunRow) -> tuple[list[str], int]:
    if not row.resumable:
        why = "it is running" if row.owned else f"it is {word_of(row)}"
        raise ConfigError(f"It cannot be resumed: {why}.", code="run_not_resumable")
    resume_arguments(row)
    return [], 0


def _deleting(desk: Desk, row: RunRow) -> tuple[list[str], int]:
    (going,) = removals(desk.store(), [row.run_id])
    return removal_lines(going)[1:], len(going.batches)


def stop(desk: Desk, runs: Sequence[str], *, cancel: bool) -> Ended:
    """Stop runs as Ctrl-C does; yield each with what went wrong.

    Args:
        cancel: Also have the provider cancel what is out of their batches.
    """
    for run in runs[:MOST]:
        try:
            out = cancel and any(batch.status == "out" for batch in batches(desk.store(), run))
            if row_of(desk.head(run)).owned or not out:
                processes.stop(desk.store(), run)
            if out:
                cancel_batches(desk.store(), run)
            desk.runs.touch(run)
            yield run, None
        except PipelineError as error:
            yield run, error


def resume(desk: Desk, runs: Sequence[str]) -> Ended:
    """Resume runs, each in a process of its own; yield each with what went wrong.

    Raises:
        ConfigError: They are more than may be started at once.
    """
    if len(runs) > MOST_PROCESSES:
        raise ConfigError(f"{len(runs)} runs would be {len(runs)} processes at once; at most {MOST_PROCESSES} are.",
                          code="too_many_processes", hint="Choose fewer.")  # fmt: skip

    def begin(run: str) -> tuple[str, PipelineError | None]:
        try:
            processes.resume(desk.store(), desk.store_url, run)
            desk.runs.touch(run)
        except PipelineError as error:
            return run, error
        return run, None

    with ThreadPoolExecutor(MOST_PROCESSES) as pool:
        yield from pool.map(begin, runs)


def delete(desk: Desk, runs: Sequence[str]) -> Ended:
    """Delete runs, their cost kept on the account first; yield each with what went wrong."""
    account = open_account(desk.store_url)
    for run in runs[:MOST]:
        try:
            going: list[Removal] = removals(desk.store(), [run])
            remove(desk.store(), account, going[0])
            desk.runs.forget(run)
            yield run, None
        except RunNotFound:
            # Another click or person was first: it is as was asked.
            yield run, None
        except PipelineError as error:
            yield run, error
