"""The commands as a whole: names, help, variables, and the document made from them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pipeline import environment
from pipeline.cli import reference
from pipeline.cli.main import COMMANDS, root
from pipeline.settings import option_fields

#: Options that permit one act, in any command.
ONE_ACT = {
    "--resume", "--resubmit", "--from", "--force", "--yes", "--accept-changes", "--skip-failed", "--retry-failed",
    "--overwrite", "--refresh", "--retry-unknown", "--resume-from", "--auto-approve", "--allow-tools",
    "--rerun-current", "--all",
}  # fmt: skip
#: One store, one form of output: the same variable everywhere.
SHARED = {"--store": "PIPELINE_STORE", "--json": "PIPELINE_JSON", "--catalogue": "PIPELINE_CATALOGUE"}


def commands() -> Iterator[tuple[str, click.Command]]:
    top = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(top, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", found) for below, found in command.commands.items())


def options() -> Iterator[tuple[str, str, click.Option]]:
    for name, command in commands():
        for param in command.params:
            if isinstance(param, click.Option):
                yield name, next(text for text in param.opts if text.startswith("--")), param


def test_tree_every_option_that_sets_a_value_has_its_variable() -> None:
    wrong = []
    for command, option, param in options():
        tail = option.removeprefix("--").replace("-", "_").upper()
        expected = None if option in ONE_ACT else SHARED.get(option, f"PIPELINE_{tail}")
        whole = ("lessons", "run", "run_dot") + (("redo", "courses") if param.name in option_fields() else ())
        if command not in whole and option not in ONE_ACT and option not in SHARED:
            expected = f"PIPELINE_{command.upper().replace('-', '_')}_{tail}"
        if param.envvar != expected:
            wrong.append(f"{command} {option}: {param.envvar}, not {expected}")
    assert wrong == []


def test_tree_lessons_has_every_setting() -> None:
    names = {param.name for name, _, param in options() if name == "lessons"}
    assert names == set(option_fields())


def test_tree_every_command_and_option_says_what_it_is_for() -> None:
    assert [name for name, command in commands() if not command.help] == []
    assert [f"{name} {option}" for name, option, param in options() if not param.help] == []


def test_tree_variables_of_settings_are_those_of_the_options() -> None:
    by_name = {param.name: param.envvar for name, _, param in options() if name == "lessons"}
    assert by_name == dict(environment.VARIABLES)


def test_reference_document_is_fresh() -> None:
    assert reference.TARGET.read_text(encoding="utf-8") == reference.reference(), "python -m pipeline.cli.reference"


def test_reference_document_holds_every_command_and_option() -> None:
    text = reference.reference()
    for name, option, _ in options():
        assert f"## {name}\n" in text
        assert option in text
