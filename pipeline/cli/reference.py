"""`python -m pipeline.cli.reference`: devops/docs/cli.md, made from the commands themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pipeline.cli.commands import COMMANDS
from pipeline.cli.main import root
from pipeline.cli.text import PROGRAM

TARGET = Path(__file__).resolve().parents[2] / "devops" / "docs" / "cli.md"
_WIDTH = 100

_PREFACE = """\
# Commands

Made by `python -m pipeline.cli.reference` from the commands' own help; do not edit.

An option that sets a value can be set by the environment variable named beside it, or in a `.env` file beside
`pipeline.sh` (a variable that is set wins). Options that permit one act (`--force`, `--resume`, `--yes`,
`--accept-changes`, `--skip-failed`, `--overwrite`) are given each time.

RUN is a run's id, a unique prefix of it, or `latest`.
"""


def reference() -> str:
    """The whole document."""
    parts = [_PREFACE]
    parts += [f"## {title}\n\n```text\n{text.rstrip()}\n```\n" for title, text in pages()]
    return "\n".join(parts)


def pages() -> Iterator[tuple[str, str]]:
    """Each command's name and help, subcommands after their group."""
    top = _context(root, PROGRAM, None)
    yield "pipeline.sh", root.get_help(top)
    for name in COMMANDS:
        command = root.get_command(top, name)
        assert command is not None
        yield from _page(command, name, top)


def _page(command: click.Command, name: str, parent: click.Context) -> Iterator[tuple[str, str]]:
    context = _context(command, name, parent)
    yield context.command_path.removeprefix(PROGRAM).strip(), command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _page(found, below, context)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH, max_content_width=_WIDTH)


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
