"""`bank`: topics of the question bank, checked and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.app.words import count
from pipeline.cli.options import NamedPath, json_option, own_option
from pipeline.cli.run_options import settings_options
from pipeline.cli.text import say, say_json, table

if TYPE_CHECKING:
    from pipeline.bank.instance import Instance
    from pipeline.lessons.checks_topics import Examination


@click.group("bank")
def bank() -> None:
    """Check and show topics of the question bank."""


@bank.command("check")
@click.argument("path", metavar="FILE|DIR", type=NamedPath())
@own_option("bank_check", "--draws", type=click.IntRange(1, 2000), default=200, show_default=True,
            help="How many questions of each template are drawn.")  # fmt: skip
@json_option
def check(path: Path, draws: int, as_json: bool) -> int:
    """Draw every question of a topic many times; name each fault.

    Each is named with file, line and reason. Exit code 0 where nothing was found, else 1. Warnings do not count.
    """
    from pipeline.app.bank import check as examinations

    files = found = 0
    for made in examinations(path, draws):
        files, found = files + 1, found + len(made.findings)
        if as_json:
            say_json(_as_json(made))
        else:
            _show(made)
    if not as_json:
        say(f"{count(files, 'topic')}, {count(found, 'finding')}.")
    return 1 if found else 0


def _show(made: Examination) -> None:
    for line, reason in made.findings:
        say(f"{made.path}:{line}: {reason}")
    for line, reason in made.warnings:
        say(f"{made.path}:{line}: warning: {reason}")
    head = ["Question", "Space", "Kept", "Different", "Answer in stem"]
    rows = [
        [row.id, f"{row.space:,}", f"{row.kept / row.tried:.0%}", f"{row.different} of {row.drawn}",
         str(row.answer_in_stem)]
        for row in made.rows
    ]  # fmt: skip
    if rows:
        say(f"{made.path}")
        say(table(head, rows, right=head[1:]))
        say()


def _as_json(made: Examination) -> dict[str, Any]:
    def told(found: list[tuple[int, str]]) -> list[dict[str, Any]]:
        return [{"line": line, "reason": reason} for line, reason in found]

    rows = [{"id": row.id, "space": row.space, "tried": row.tried, "kept": row.kept, "different": row.different,
             "drawn": row.drawn, "answer_in_stem": row.answer_in_stem} for row in made.rows]  # fmt: skip
    return {"type": "topic", "file": str(made.path), "findings": told(made.findings),
            "warnings": told(made.warnings), "questions": rows}  # fmt: skip


@bank.command("show")
@click.argument("topic", metavar="TOPIC")
@own_option("bank_show", "--seed", default="1", metavar="TEXT", show_default=True, help="Decides the numbers.")
@own_option("bank_show", "--id", "question", default="", metavar="NAME", help="Only this question.")
@own_option("bank_show", "--count", "number", type=click.IntRange(1, 500), default=1, show_default=True,
            help="How many of each question.")  # fmt: skip
@settings_options("bank")
@json_option
def show(topic: str, seed: str, question: str, number: int, bank: Path | None, as_json: bool) -> None:
    """Print questions of a topic with answers, working and marks.

    TOPIC is a file or an outcome: num.surds, or mathematics/national_5/num.surds.
    """
    from pipeline.app.bank import draw
    from pipeline.app.bank import topic as find

    found = find(topic, bank)
    if not as_json:
        say(f"{found.name} ({found.course}, {found.outcome}), seed {seed}")
    for n, instance in enumerate(draw(found, seed, number, question)):
        item = instance.item([f"point {point}" for point in instance.template.asks or (1,)])
        if as_json:
            say_json({"type": "question", **instance.origin, "level": instance.level, "item": item})
        else:
            say("\n" + "\n".join(_lines(instance, item, n % number)))


def _lines(instance: Instance, item: dict[str, Any], n: int) -> list[str]:
    lines = [f"[{instance.id} {n}, level {instance.level}] {item['ask']}"]
    for figure in item.get("figures", ()):
        lines.append(f"  figure     {figure['kind']}: " + "; ".join(figure["lines"]))
    for letter, part in zip("abcdef", item.get("parts", ()), strict=False):
        lines += [f"  ({letter})        {part['ask']}", f"  answer     {part['answer']}"]
    if "answer" in item:
        lines.append(f"  answer     {item['answer']}")
    if "expression" in item:
        lines.append(f"  from       {item['expression']}")
    for option in item.get("options", ()):
        lines.append(f"  option     {option['text']}  ({option['why']})")
    for answer in instance.wrong if "options" not in item else ():
        lines.append(f"  wrong      {answer.text}  ({instance.text(answer.spec['why'])})")
    for kind in ("working", "marks"):
        for text in item[kind]:
            lines.append(f"  {kind:<10} " + text.replace("\n", " | "))
    lines.append(f"  feedback   {item['feedback']}")
    return lines + [f"  more       {text}" for text in item.get("more", ())]
