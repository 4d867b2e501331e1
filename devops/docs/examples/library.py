"""From Python: a run with a model of one's own that fails, and the resume that repeats only what failed.

PYTHONPATH=. .venv/bin/python devops/docs/examples/library.py
"""

from __future__ import annotations

import tempfile

from pipeline import Event, Message, ModelInfo, Pipeline, Reply, Request, StepContext, TaskRejected, open_store, step


class Shout:
    """A Model: one try a call, no retry, no price, no log."""

    asked = 0

    def check(self) -> ModelInfo:
        """Free; called once before anything is recorded. `paid=False`: nothing it says costs money."""
        return ModelInfo("shout-1", paid=False)

    def complete(self, request: Request) -> Reply:
        """The reply always says why it stopped, and carries its usage."""
        self.asked += 1
        return Reply(request.messages[-1].text.upper(), stop_reason="end_turn")

    def close(self) -> None:
        """Nothing is open."""


def shout(ctx: StepContext, word: str) -> str:
    """The body of one task; it may run again from its top, so it acts through ctx alone."""
    text = ctx.ask(Request("shout-1", [Message("user", word)])).text
    if word in ctx.options.get("forbidden", ()):
        raise TaskRejected(f"{word} is not wanted")
    return text


@step()
def all_words(ctx: StepContext) -> dict[str, object]:
    """Failed items do not stop the others; the step fails at the end, naming them."""
    return {"loud": list(ctx.map("word", ctx.params["words"], shout, key=str))}


PIPELINE = Pipeline("shouting", steps=[all_words])


def main() -> None:
    """Run, fail, resume."""
    model = Shout()
    store = open_store(f"files:{tempfile.mkdtemp()}")
    heard: list[Event] = []
    first = PIPELINE.run(
        {"words": ["one", "two", "three"]}, store=store, model=model, options={"forbidden": ["two"]},
        listener=heard.append,
    )  # fmt: skip
    print(first.status, first.exit_code, first.error)
    again = PIPELINE.resume(first.run_id, store=store, model=model)
    print(again.status, again.exit_code, again.outputs["all_words"]["loud"])
    print(f"asked {model.asked} times; heard {len(heard)} events in the first go")


if __name__ == "__main__":
    main()
