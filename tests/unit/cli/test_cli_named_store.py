"""Commands in hints name the store that was looked at, where it is not the default one: all hints of the source."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from pipeline.cli.main import root
from pipeline.cli.options import OF_A_RUN, OF_RUNS, look_at, name_store
from pipeline.errors import ConfigError
from tests.messages import CLASSES
from tests.sources import package

URL = "sqlite:/srv/team runs.db"
WORDS = f" --store {shlex.quote(URL)}"
COMMAND = re.compile(r"\./pipeline\.sh [^`;\n]*")


def commands(group: click.Group = root, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{before}{name} ")
        elif found is not None:
            yield before + name, found


LOOKING = {name for name, each in commands() if any("--store" in option.opts for option in each.params)}


def text_of(node: ast.AST) -> str:
    """The literal text of an expression, with RUN in the place of each value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "RUN"


def hints() -> Iterator[tuple[str, str]]:
    """Every hint of an error, and every text that is a constant of a module and so may become one."""
    for source in package():
        for node in source.nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASSES:
                found = [item.value for item in node.keywords if item.arg == "hint"]
            elif isinstance(node, ast.Assign) and any(getattr(each, "id", "").strip("_") for each in node.targets):
                found = [node.value]
            else:
                continue
            for text in map(text_of, found):
                if "./pipeline.sh " in text and "{words}" not in text:
                    yield source.name, text


def named(hint: str) -> str:
    error = ConfigError("Wrong.", hint=hint)
    with click.Context(root) as context:
        look_at(context, URL)
        name_store(error)
        name_store(error)
    return str(error.hint)


def test_commands_that_look_at_a_store_are_those_that_have_the_option() -> None:
    assert {*OF_RUNS, *OF_A_RUN} == LOOKING


def test_every_command_in_a_hint_names_the_store_once() -> None:
    found = list(hints())
    assert len(found) > 25
    for module, hint in found:
        for command in COMMAND.findall(named(hint)):
            words = command.split()
            looks = words[1] in LOOKING or " ".join(words[1:3]) in LOOKING
            assert command.count(" --store ") <= 1, (module, command)
            # Those whose words are put in as a value show as RUN.
            assert not looks or WORDS in command or command.endswith("RUN"), (module, command)


@pytest.mark.parametrize(
    ("hint", "wanted"),
    [
        ("`./pipeline.sh list` shows them.", f"`./pipeline.sh list{WORDS}` shows them."),
        ("See `./pipeline.sh show 2026_1 sow`.", f"See `./pipeline.sh show 2026_1{WORDS} sow`."),
        ("./pipeline.sh run FILE.py:NAME --resume 1", f"./pipeline.sh run{WORDS} FILE.py:NAME --resume 1"),
        ("`./pipeline.sh cost --reconcile`", f"`./pipeline.sh cost{WORDS} --reconcile`"),
        ("`./pipeline.sh lessons --resume 1`", f"`./pipeline.sh lessons --resume 1{WORDS}`"),
        ("`./pipeline.sh lessons --subject x`", f"`./pipeline.sh lessons{WORDS} --subject x`"),
        ("`./pipeline.sh cost 1`; `./pipeline.sh log 1`",
         f"`./pipeline.sh cost 1{WORDS}`; `./pipeline.sh log 1{WORDS}`"),
        (f"`./pipeline.sh cost 1{WORDS}` or `./pipeline.sh log 1`",
         f"`./pipeline.sh cost 1{WORDS}` or `./pipeline.sh log 1{WORDS}`"),
        ("`./pipeline.sh store copy` and `./pipeline.sh store check 1`",
         f"`./pipeline.sh store copy` and `./pipeline.sh store check 1{WORDS}`"),
        ("`./pipeline.sh subjects`, ./pipeline.sh install ui", "`./pipeline.sh subjects`, ./pipeline.sh install ui"),
    ],
)  # fmt: skip
def test_store_is_named_where_the_command_can_have_it(hint: str, wanted: str) -> None:
    assert named(hint) == wanted
