"""What can be set, its variables, its limits, and how `.env` is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.environment import read_env_file
from pipeline.errors import ConfigError
from pipeline.settings import Execution, option_fields, options_of, parse_usd

ONE_ACT = {
    "accept_changes", "force", "from_step", "overwrite", "refresh", "resubmit", "resume", "retry_failed",
    "retry_unknown", "skip_failed", "yes",
}  # fmt: skip


def test_settings_every_option_has_a_variable_but_those_that_permit_one_act() -> None:
    assert set(environment.VARIABLES) == set(option_fields())
    assert {name for name, variable in environment.VARIABLES.items() if variable is None} == ONE_ACT
    for name, variable in environment.VARIABLES.items():
        assert variable in (None, f"PIPELINE_{name.upper()}")


def test_settings_defaults_are_those_that_are_documented() -> None:
    asked, execution, _ = options_of({})
    assert (asked.lessons, execution.concurrency, execution.max_cost_usd) == (18, 4, Decimal(50))
    assert asked.given == execution.given == frozenset()


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


@pytest.mark.parametrize(
    ("text", "usd"), [("50", Decimal(50)), ("$2.50", Decimal("2.5")), ("none", None), ("NONE", None)]
)
def test_settings_ceiling_is_dollars_or_none(text: str, usd: Decimal | None) -> None:
    assert parse_usd(text) == usd


@pytest.mark.parametrize("text", ["", "fifty", "-1", "inf", "nan"])
def test_settings_ceiling_refuses_what_is_no_amount(text: str) -> None:
    with pytest.raises(ConfigError, match="an amount of dollars"):
        parse_usd(text)


def test_settings_relative_out_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Execution(out=Path("site")).out_folder == tmp_path / "site"
    assert Execution().out_folder == environment.home() / "devops" / "published"


def test_env_file_reads_quotes_comments_and_export(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "# keys\n\nA=1\nexport B='two words' # why\nC=\"x#y\"\nD= spaced # note\r\nE=a=b\nF=\nG=it's\nnot a pair\n=7\n"
    )
    pairs, bad = read_env_file(file)
    assert pairs == {"A": "1", "B": "two words", "C": "x#y", "D": "spaced", "E": "a=b", "F": "", "G": "it's"}
    assert bad == [10, 11]


def test_env_file_that_is_missing_is_empty(tmp_path: Path) -> None:
    assert read_env_file(tmp_path / ".env") == ({}, [])
