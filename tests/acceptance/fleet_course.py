"""A pipeline whose items ask twice each; the fleet's workers load this file too."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from pipeline import Message, Pipeline, Request, StepContext, step

MODEL = "claude-sonnet-5-5"
ITEMS = 6


def write(ctx: StepContext, item: int) -> dict[str, Any]:
    """Two questions, one after the other."""
    texts, cap = [f"{part} {item} of {ctx.params['name']}" for part in ("draft", "review")], ctx.params.get("cap", 64)
    replies = [ctx.ask(Request(MODEL, [Message("user", text)], max_tokens=cap)).text for text in texts]
    if item == 1 and Path(ctx.params.get("deadly", os.devnull)).is_file():
        os._exit(1)
    return {"texts": replies}


@step()
def made(ctx: StepContext) -> dict[str, Any]:
    """All items."""
    return {"rows": list(ctx.map("made", range(ITEMS), write, key=str))}


def fragile(ctx: StepContext, item: int) -> str:
    """One question; over item 1 the process is killed with the reply in its hand, once."""
    text = ctx.ask(Request(MODEL, [Message("user", f"fragile {item}")], max_tokens=64)).text
    mark = Path(ctx.params["mark"])
    if item == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return text


@step()
def broken(ctx: StepContext) -> dict[str, Any]:
    """Items that kill whoever does them."""
    return {"rows": list(ctx.map("broken", range(3), fragile, key=str))}


PIPELINE = Pipeline("fleet", [made])
FRAGILE = Pipeline("fragile", [broken])
