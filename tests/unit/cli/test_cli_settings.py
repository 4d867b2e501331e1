"""What can be set: options, their variables and limits, how `.env` is read; and the document made from the help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import click
import pytest

from pipeline import environment
from pipeline.cli import reference
from pipeline.cli.lessons import lessons
from pipeline.cli.main import COMMANDS, root
from pipeline.cli.run_options import options_of as options_given
from pipeline.environment import read_env_file
from pipeline.errors import ConfigError
from pipeline.providers import variables
from pipeline.settings import Execution, Identity, option_fields, options_of, parse_usd
from tests.codes import coded

#: Options that permit one act, in any command.
ONE_ACT = {
    "--resume", "--resubmit", "--from", "--force", "--yes", "--accept-changes", "--skip-failed", "--retry-failed",
    "--overwrite", "--refresh", "--retry-unknown", "--resume-from", "--auto-approve", "--allow-tools",
    "--rerun-current", "--all", "--approve", "--edit", "--redo", "--keep", "--take", "--undo",
}  # fmt: skip
#: One store, one form of output: the same variable everywhere.
SHARED = {"--store": "PIPELINE_STORE", "--json": "PIPELINE_JSON", "--catalogue": "PIPELINE_CATALOGUE",
          "--bank": "PIPELINE_BANK"}  # fmt: skip


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


def test_option_that_sets_a_value_has_its_variable_and_one_that_permits_an_act_has_none() -> None:
    wrong = []
    for command, option, param in options():
        tail = option.removeprefix("--").replace("-", "_").upper()
        expected = None if option in ONE_ACT else SHARED.get(option, f"PIPELINE_{tail}")
        whole = ("lessons", "run", "run_dot") + (("redo", "courses") if param.name in option_fields() else ())
        if command not in whole and option not in ONE_ACT and option not in SHARED:
            expected = f"PIPELINE_{re.sub('[- ]', '_', command.upper())}_{tail}"
        if param.envvar != expected:
            wrong.append(f"{command} {option}: {param.envvar}, not {expected}")
    assert wrong == []
    of_lessons = {param.name: param.envvar for name, _, param in options() if name == "lessons"}
    assert of_lessons == dict(environment.VARIABLES)
    assert set(of_lessons) == set(option_fields())


def test_reference_is_fresh_and_says_what_every_command_and_option_is_for() -> None:
    text = reference.reference()
    assert reference.TARGET.read_text(encoding="utf-8") == text, "run `python -m pipeline.cli.reference`"
    assert [name for name, command in commands() if not command.help or f"## {name}\n" not in text] == []
    assert [f"{name} {option}" for name, option, param in options() if not param.help or option not in text] == []


def given(*arguments: str) -> tuple[Identity, Execution]:
    with lessons.make_context("lessons", list(arguments)) as context:
        return options_given(context)[:2]


def test_options_on_the_line_win_over_variables_and_what_was_given_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIPELINE_CONCURRENCY", "2")
    monkeypatch.setenv("PIPELINE_MAX_COST_USD", "7")
    monkeypatch.setenv("PIPELINE_LESSONS", "")
    assert given()[1].max_cost_usd == Decimal(7)
    assert given("--max-cost-usd", "$2.50")[1].max_cost_usd == Decimal("2.50")
    asked, execution = given("--model", "offline", "--max-cost-usd", "none")
    assert asked.given | execution.given == {"model", "max_cost_usd", "concurrency"}
    assert (asked.model, execution.max_cost_usd, execution.concurrency, asked.lessons) == ("offline", None, 2, 18)
    assert given("--lessons", "18")[0].given == {"lessons"}


@pytest.mark.parametrize("name", ["FORCE", "YES", "RESUME", "ACCEPT_CHANGES", "SKIP_FAILED", "OVERWRITE"])
def test_options_that_permit_one_act_are_not_taken_from_variables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PIPELINE_{name}", "1")
    assert [each.given for each in given()] == [frozenset(), frozenset()]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"lessons": 0}, "--lessons is 0"),
        ({"lessons": 121}, "--lessons is 121"),
        ({"concurrency": 0}, "--concurrency is 0"),
        ({"sample": 0}, "--sample is 0"),
        ({"effort": "huge"}, "--effort is 'huge'"),
        ({"until": "publish"}, "--until is 'publish'"),
        ({"max_cost_usd": Decimal(-1)}, "--max-cost-usd is -1"),
        ({"max_cost_usd": Decimal("NaN")}, "--max-cost-usd is NaN"),
        ({"max_cost_usd": Decimal("1e400")}, r"--max-cost-usd is 1E\+400"),
        ({"force": True, "resume": "latest"}, "--force starts a new run"),
    ],
)
def test_settings_outside_their_range_name_the_option(values: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        options_of(values)


def test_settings_ceiling_is_dollars_or_none() -> None:
    for text, usd in (("50", Decimal(50)), ("$2.50", Decimal("2.5")), ("none", None), ("NONE", None)):
        assert parse_usd(text) == usd
    for text in ("", "fifty", "-1", "inf", "nan"):
        with pytest.raises(ConfigError, match="an amount of dollars"):
            parse_usd(text)


def test_settings_relative_out_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Execution(out=Path("site")).out_folder == tmp_path / "site"
    assert Execution().out_folder == environment.home() / "devops" / "published"


def test_env_file_reads_quotes_comments_and_export(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert read_env_file(file) == ({}, [])
    file.write_text(
        "# keys\n\nA=1\nexport B='two words' # why\nC=\"x#y\"\nD= spaced # note\r\nE=a=b\nF=\nG=it's\nnot a pair\n=7\n"
    )
    pairs, bad = read_env_file(file)
    assert pairs == {"A": "1", "B": "two words", "C": "x#y", "D": "spaced", "E": "a=b", "F": "", "G": "it's"}
    assert bad == [10, 11]


def test_every_command_can_answer_in_json() -> None:
    groups = {name for name, command in commands() if isinstance(command, click.Group)}
    having = {name for name, option, _ in options() if option == "--json"}
    assert sorted({name for name, _ in commands()} - having - groups) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PIPELINE_MODELL", "PIPELINE_MODEL"), ("pipeline_store", "PIPELINE_STORE"),
        ("ANTROPIC_API_KEY", "ANTHROPIC_API_KEY"), ("PIPELINE_MAX_COST_US", "PIPELINE_MAX_COST_USD"),
        ("PIPELINE_MODEL", None), ("PIPELINE_CLEANUP_MAX_RUNS", None), ("PATH", None), ("OPENAI_API_KEY", None),
        ("PIPELINE_CEILING_USD", "PIPELINE_MAX_COST_USD"), ("PIPELINE_LIMIT", "PIPELINE_MAX_COST_USD"),
        ("PIPELINE_BUDGET_USD", "PIPELINE_DAILY_BUDGET_USD"), ("PIPELINE_BUDGET_SET_USD", None), ("PIPELINE_ID", None),
        ("OPENAI_API_KYE", "OPENAI_API_KEY"), ("ANTHROPIC_AWS_API_KEY", None), ("ANTHROPIC_VERTEX_BASE_URL", None),
    ],
)  # fmt: skip
def test_near_miss_of_a_variable_is_named(name: str, meant: str | None) -> None:
    assert list(environment.mistyped([name], COMMANDS, variables())) == ([(name, meant)] if meant else [])


def test_no_path_may_be_empty() -> None:
    paths = [
        (name, option)
        for name, command in commands()
        for option in command.params
        if isinstance(option.type, click.Path) and option.type.type is Path
    ]
    assert {"export", "lessons", "run", "ui", "recover", "cost"} <= {name for name, _ in paths}
    for name, option in paths:
        with pytest.raises(ConfigError, check=coded("empty_path")):
            option.type.convert("", option, click.Context(root, info_name=name))
