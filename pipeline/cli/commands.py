"""The table of commands: what each is called, and where it is; knows nothing else of them."""

from __future__ import annotations

#: Command → module, attribute, what it does. `--help` and completion read only this.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "lessons": ("pipeline.cli.lessons", "lessons", "Make a course, or go on with one: seed, sow, lessons, publish."),
    "courses": ("pipeline.cli.courses", "courses", "Make many courses, a line of a CSV file each."),
    "list": ("pipeline.cli.runs", "list_runs", "List runs, newest first."),
    "status": ("pipeline.cli.status", "status", "Show one run: its steps, cost and how to go on."),
    "show": ("pipeline.cli.show", "show", "Show what a step or one of its items made."),
    "cost": ("pipeline.cli.cost.command", "cost", "Show what was spent on what, wasted and saved."),
    "log": ("pipeline.cli.log", "log", "Print a run's records; --follow waits for more."),
    "history": ("pipeline.cli.history", "history", "List a run's checkpoints: where each led, and what it set."),
    "diff": ("pipeline.cli.diff", "diff", "Show what two runs, or two points of runs, differ in."),
    "why": ("pipeline.cli.why", "why", "Say why a step or item ran, or was reused."),
    "replay": ("pipeline.cli.replay", "replay", "Run a run's graph again on its recorded replies alone."),
    "fork": ("pipeline.cli.fork", "fork", "Start a new run from a checkpoint of another."),
    "run": ("pipeline.cli.run", "run", "Run a pipeline of your own: a graph in FILE.dot, or FILE.py:NAME."),
    "run_dot": ("pipeline.cli.run", "run_dot", "Another name of run."),
    "gates": ("pipeline.cli.gates", "gates", "List questions that await an answer."),
    "answer": ("pipeline.cli.gates", "answer", "Answer an open question of a run."),
    "validate": ("pipeline.cli.dot", "validate", "Check whether a DOT pipeline can be run; list its commands."),
    "parse": ("pipeline.cli.dot", "parse", "Show what a DOT file says: nodes, edges, attributes."),
    "handlers": ("pipeline.cli.dot", "handlers", "List the kinds of nodes a DOT pipeline may have."),
    "draw": ("pipeline.cli.dot", "draw", "Draw a DOT pipeline, or a run with statuses and costs."),
    "subjects": ("pipeline.cli.subjects", "subjects", "List the courses of the catalogue; check or start a new one."),
    "mark-done": ("pipeline.cli.mark_done", "mark_done", "Record that a step that was cut off had done its work."),
    "redo": ("pipeline.cli.lessons", "redo", "Make one lesson again, with a note, and publish anew."),
    "batches": ("pipeline.cli.batches", "batches", "List the batches that runs have handed in."),
    "cancel": ("pipeline.cli.batches", "cancel", "Call a run's batches back from the provider."),
    "settle": ("pipeline.cli.settle", "settle", "Close an open charge with what was billed."),
    "cleanup": ("pipeline.cli.upkeep", "cleanup", "Remove old runs; what they cost stays on the account."),
    "delete": ("pipeline.cli.upkeep", "delete", "Delete runs for good; what they cost stays on the account."),
    "recover": ("pipeline.cli.upkeep", "recover", "Append the records of an emergency file to a run."),
    "store": ("pipeline.cli.store", "store", "Look through the store, find damage, copy runs to another."),
    "extras": ("pipeline.cli.extras", "extras", "List optional packages: what each is for, and whether it is there."),
    "completion": ("pipeline.cli.completion", "completion", "Print a shell's completion script."),
}
