"""`gates` and `answer`: what runs ask people, and what people answer."""

from __future__ import annotations

import click

from pipeline.app.run_list import row_of, way_on
from pipeline.app.stores import head_of, open_store, words_of
from pipeline.app.words import one_line, when
from pipeline.cli.options import RunName, common_options, here, in_its_folder, own_option, run_argument
from pipeline.cli.text import say, say_json, table, tell

_ELSEWHERE = "For a run in its own folder: ./pipeline.sh gates DIR"


@click.command("gates")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@common_options
@in_its_folder
def gates(run: str | None, as_json: bool, store: str | None) -> None:
    """List open questions: of one run, or of every run of the store that awaits an answer.

    For a run in its own folder (run --run-dir DIR), name the folder: gates DIR.
    """
    from pipeline.app.gates import gates as open_gates

    found = list(open_gates(open_store(store), run or ""))
    if as_json:
        for gate in found:
            say_json(gate.to_json())
        return
    if not found:
        where = here() or " of the store"
        say("No open questions." if run else f"No open questions in the runs{where}. {_ELSEWHERE}")
        return
    rows = [
        [gate.run, gate.gate, one_line(gate.text, 80), ", ".join(gate.choices) or "any text", when(gate.since)]
        for gate in found
    ]
    say(table(["Run ID", "Gate", "Question", "Choices", "Since (UTC)"], rows))
    say(f"\nAnswer with: ./pipeline.sh answer RUN GATE CHOICE{words_of(store)}")
    if not run:
        say(_ELSEWHERE)


@click.command("answer")
@run_argument
@click.argument("gate")
@click.argument("choice")
@own_option("answer", "--note", default="", metavar="TEXT", help="A note to keep with the answer.")
@common_options
def answer(run: str, gate: str, choice: str, note: str, as_json: bool, store: str | None) -> None:
    """Answer an open question of a run: CHOICE is one of its choices, or its key.

    The answer is recorded; it takes effect when the run is resumed.
    """
    from pipeline.app.gates import answer as record

    place = open_store(store)
    asked, chosen = record(place, run, gate, choice, note=note, by="command line")
    resume = way_on(row_of(head_of(place, asked.run)), store)
    done = {"run": asked.run, "gate": asked.gate, "choice": chosen, "resume": resume}
    tell([done], [f"{asked.gate}: {chosen}", f"Resume: {resume}"], as_json=as_json)
