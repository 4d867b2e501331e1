"""Settings typed into fields: each fault at its field, the environment below, the same as options of the command."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.app.courses import arguments, check, defaults, read_fields
from pipeline.errors import ConfigError
from pipeline.settings import Execution, Identity

COURSE = {"subject": "maths", "level": "n5", "lessons": "3", "model": "offline"}


def test_fields_become_settings_and_options(tmp_path: Path) -> None:
    typed = COURSE | {"batch": "yes", "blind_solve": "no", "force": "yes", "max_cost_usd": "$2.50", "sample": " "}
    typed |= {"labels": "team=maths, project=x"}
    found = read_fields(typed, f"files:{tmp_path}")
    assert found.errors == {}
    assert (found.asked.lessons, found.asked.blind_solve) == (3, False)
    assert found.execution.labels == "project=x,team=maths"
    assert (found.execution.max_cost_usd, found.execution.batch, found.execution.sample) == (
        Decimal("2.50"),
        True,
        None,
    )
    assert arguments(typed) == [
        "--subject=maths", "--level=n5", "--lessons=3", "--model=offline", "--batch", "--no-blind-solve", "--force",
        "--max-cost-usd=$2.50", "--label=team=maths, project=x",
    ]  # fmt: skip


def test_every_fault_is_told_at_its_field() -> None:
    typed = {"subject": "", "lessons": "500", "max_cost_usd": "much", "effort": "huge", "daily_budget_usd": "-1",
             "labels": "maths"}  # fmt: skip
    assert "such as team=maths" in read_fields(typed, "").errors["labels"]
    assert set(read_fields(typed, "").errors) == {"subject", "level", "lessons", "max_cost_usd", "effort",
                                                   "daily_budget_usd", "labels"}  # fmt: skip
    assert set(read_fields({"subject": "drama", "level": "national_3"}, "").errors) == {"level"}


def test_credential_is_asked_for_only_where_it_is_needed() -> None:
    typed = COURSE | {"model": "claude-sonnet-5-5"}
    assert read_fields(typed, "").errors == {}
    assert "ANTHROPIC_API_KEY" in read_fields(typed, "", starting=True).errors["model"]


def test_empty_field_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LESSONS", "7")
    monkeypatch.setenv("PIPELINE_STORE", "files:/elsewhere")
    assert defaults() == {"lessons": "7"}
    assert read_fields(COURSE | {"lessons": ""}, "").asked.lessons == 7
    assert read_fields(COURSE, "").asked.lessons == 3


def test_table_of_courses_is_checked_line_by_line(tmp_path: Path) -> None:
    asked, execution = Identity(model="offline"), Execution(store=f"files:{tmp_path}")
    good = check("subject,level,lessons\nmaths,n5,2\nphysics,higher,1\n", "pasted", asked, execution)
    assert [(line.number, line.plan.lessons) for line in good] == [(2, 2), (3, 1)]
    with pytest.raises(ConfigError) as refused:
        check("subject,level,lessons\nmaths,n5,2\nmaths,n9,1\nphysics,higher,x\n", "pasted", asked, execution)
    assert [number for number, _ in refused.value.data["lines"]] == [3, 4]
    with pytest.raises(ConfigError, match="line 52: this line and those below it were not looked at") as refused:
        check("subject,level\n" + "maths,n9\n" * 10_000, "pasted", asked, execution)
    assert len(refused.value.data["lines"]) == 51
    with pytest.raises(ConfigError, match="longer than"):
        check("subject,level\n" + "x" * 1_000_000, "pasted", asked, execution)
