"""A pipeline whose items ask twice each; the fleet's workers load this file too."""

from __future__ import annotations

from typing import Any

from pipeline import Message, Pipeline, Request, StepContext, step

MODEL = "claude-sonnet-5-5"
ITEMS = 6


def write(ctx: StepContext, item: int) -> dict[str, Any]:
    """Two questions, one after the other."""
    texts = [f"{part} {item} of {ctx.params['name']}" for part in ("draft", "review")]
    return {"texts": [ctx.ask(Request(MODEL, [Message("user", text)], max_tokens=64)).text for text in texts]}


@step()
def made(ctx: StepContext) -> dict[str, Any]:
    """All items."""
    return {"rows": list(ctx.map("made", range(ITEMS), write, key=str))}


PIPELINE = Pipeline("fleet", [made])
