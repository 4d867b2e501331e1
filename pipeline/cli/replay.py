"""`replay`: a run's graph run again on its recorded replies alone; equal, or the first difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.briefly import arrow
from pipeline.cli.options import FileAndName, json_option, open_store, own, run_argument, store_option
from pipeline.cli.text import count, say, say_json
from pipeline.errors import StepFailed
from pipeline.store.reading import resolve

if TYPE_CHECKING:
    from pipeline.travel.replay import Difference, Replayed

#: Characters of each side of a difference that are shown.
_WIDTH = 200


@click.command("replay")
@run_argument
@click.option("--to", default="end", envvar=own("replay", "to"), show_envvar=True, metavar="POINT", show_default=True,
              help="Up to where: a record's number, a checkpoint id, STEP, STEP#VISIT, start or end.")  # fmt: skip
@click.option("--file", "target", type=FileAndName(), envvar=own("replay", "file"), show_envvar=True,
              metavar="FILE.py:NAME", help="The code of a pipeline of your own.")  # fmt: skip
@json_option
@store_option
def replay(run: str, to: str, target: str | None, as_json: bool, store: str | None) -> int:
    """Run a run's stored graph again on its recorded replies alone: no call, nothing written outside.

    Exit code 0: the same context, outputs, edges and order came out. 6: something else did; the first difference
    is named. Steps that act outside and people's answers are taken as recorded.
    """
    from pipeline import app

    place = open_store(store)
    found = app.replay(place, resolve(place, run), to=to, target=target)
    if as_json:
        say_json(_json(found))
    else:
        for line in _lines(found):
            say(line)
    return 0 if found.equal else StepFailed.exit_code


def _lines(found: Replayed) -> list[str]:
    taken = f"; as recorded: {', '.join(path.removesuffix('#1') for path in found.taken)}" if found.taken else ""
    lines = [f"Replayed run {found.run_id} to {found.seq}: {count(found.again, 'step')} again on "
             f"{count(found.replies, 'recorded answer')}{taken}."]  # fmt: skip
    if found.equal:
        return [*lines, "Equal: the same context, outputs, edges and order."]
    first, more = found.differences[0], len(found.differences) - 1
    lines.append(f"Different: {first.path or 'the run'}, {first.key}: {_sides(first)}")
    return [*lines, f"{count(more, 'more difference')}; --json has them all."] if more else lines


def _sides(found: Difference) -> str:
    return arrow("nothing" if found.recorded is None else found.recorded,
                 "nothing" if found.now is None else found.now, _WIDTH)  # fmt: skip


def _json(found: Replayed) -> dict[str, Any]:
    return {
        "run_id": found.run_id,
        "seq": found.seq,
        "equal": found.equal,
        "again": found.again,
        "taken": list(found.taken),
        "replies": found.replies,
        "differences": [
            {"path": each.path, "key": each.key, "recorded": each.recorded, "now": each.now, "seq": each.seq}
            for each in found.differences
        ],
    }
