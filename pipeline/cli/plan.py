"""`lessons --dry-run`: what a start would do and cost, the totals last; the prompts where they are asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli.text import count, money, say, say_json, table
from pipeline.files import write_over

if TYPE_CHECKING:
    from pipeline.app import Plan
    from pipeline.app.plan import Item

_HEAD = ["Step", "Action", "Why", "Calls", "Tokens", "Expected", "At worst"]


def show_plan(plan: Plan, *, as_json: bool, prompts: Path | None = None) -> int:
    """Print a plan.

    Args:
        prompts: Folder to write every prompt to, a file each; "-": they are printed first.
    """
    if as_json:
        say_json({"type": "plan", **plan.to_json()})
        return 0
    told = _prompts(plan, prompts)
    run = f" It goes on with run {plan.run}." if plan.run else ""
    lessons = count(plan.lessons, "lesson")
    say(f"{plan.title}, {lessons}, model {plan.model}. Nothing is made and nobody is asked.{run}")
    say()
    say(table(_HEAD, [_row(item) for item in plan.items], right=_HEAD[3:]))
    say()
    say(told)
    for line in plan.costs():
        say(line)
    say(f"Worst cost: {money(plan.worst_usd)}")
    return 0


def _prompts(plan: Plan, place: Path | None) -> str:
    """Show the prompts, or write them; a line on where they are to be read."""
    if place is None:
        return "Prompts: --prompts DIR writes each of them into a file, --prompts - prints them."
    kinds: Counter[str] = Counter()
    for name, text in plan.prompts():
        kinds["revision" if name.endswith("revision") else name.partition("-")[0]] += 1
        if str(place) == "-":
            say(text + "\n")
        else:
            place.mkdir(parents=True, exist_ok=True)
            write_over(place / f"{name}.md", (text + "\n").encode("utf-8"))
    where = "above" if str(place) == "-" else f"in {place}"
    return f"Prompts, {where}: " + ", ".join(f"{number} {kind}" for kind, number in kinds.items())


def _row(item: Item) -> list[str]:
    paid = item.action == "run" and item.calls
    cells = (
        [f"{item.calls:g}", f"{item.tokens:,}", money(item.expected_usd), money(item.worst_usd)] if paid else [""] * 4
    )
    return [item.name, item.action, item.why, *cells]
