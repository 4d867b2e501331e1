"""`gates` and `answer`: what runs ask people, and what people say."""

from __future__ import annotations

import click

from pipeline.cli.options import RunName, in_its_folder, json_option, open_store, own, run_argument, store_option
from pipeline.cli.reading import head_of
from pipeline.cli.runs import way_on
from pipeline.cli.summary import row_of
from pipeline.cli.text import one_line, say, say_json, table, when
from pipeline.cli.where import here
from pipeline.store.reading import resolve

_ELSEWHERE = "A run in a folder of its own says what it asks under that name: ./pipeline.sh gates DIR"


@click.command("gates")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@json_option
@store_option
@in_its_folder
def gates(run: str | None, as_json: bool, store: str | None) -> None:
    """List open questions: of one run, or of every run of the store that waits for a person.

    A run in a folder of its own (run --run-dir DIR) is not one of the store: name it, gates DIR.
    """
    from pipeline import app

    place = open_store(store)
    found = list(app.gates(place, resolve(place, run) if run else ""))
    if as_json:
        for gate in found:
            say_json({"run": gate.run, "gate": gate.gate, "question": gate.text, "choices": list(gate.choices),
                      "shown": dict(gate.shown), "since": gate.since})  # fmt: skip
        return
    if not found:
        say("Nothing is asked." if run else f"Nothing is asked by the runs{here() or ' of the store'}. {_ELSEWHERE}")
        return
    rows = [
        [gate.run, gate.gate, one_line(gate.text, 80), ", ".join(gate.choices) or "any text", when(gate.since)]
        for gate in found
    ]
    say(table(["Run ID", "Gate", "Question", "Choices", "Since (UTC)"], rows))
    say("\nAnswer with: ./pipeline.sh answer RUN GATE CHOICE")
    if not run:
        say(_ELSEWHERE)


@click.command("answer")
@run_argument
@click.argument("gate")
@click.argument("choice")
@click.option("--note", default="", envvar=own("answer", "note"), show_envvar=True, metavar="TEXT",
              help="What to remember beside the answer.")  # fmt: skip
@store_option
def answer(run: str, gate: str, choice: str, note: str, store: str | None) -> None:
    """Answer an open question of a run: CHOICE is one of its choices, or its key.

    The answer is recorded; it counts when the run goes on.
    """
    from pipeline import app

    place = open_store(store)
    name = resolve(place, run)
    asked, chosen = app.answer(place, name, gate, choice, note=note, by="command line")
    say(f"{asked.gate}: {chosen}")
    say(f"Go on: {way_on(row_of(head_of(place, name)), store)}")
