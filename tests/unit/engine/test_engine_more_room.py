"""The command after a ceiling: pasted as it stands, it does not stop at the same place."""

from __future__ import annotations

import pytest

from pipeline.engine.limits import more_room
from pipeline.errors import BudgetExceeded, PipelineError, StepFailed


@pytest.mark.parametrize(
    ("limit", "spent", "worst", "option"),
    [
        ("50", "49.9", "0.4", " --max-cost-usd 100.00"),
        ("0.5", "0.1009", "0.4330", " --max-cost-usd 1.00"),
        ("0.4", "0.0258", "0.4181", " --max-cost-usd 0.87"),
        ("0.4", "0.1", "3", " --max-cost-usd 6.10"),
        ("0.4", "None", "3", ""),
        ("0.4", "0", "unpriced", ""),
        ("0.4", "0.1", "None", ""),
    ],
)
def test_engine_names_a_ceiling_with_room(limit: str, spent: str, worst: str, option: str) -> None:
    assert more_room(BudgetExceeded("no", limit=limit, spent=spent, worst=worst)) == option


@pytest.mark.parametrize("error", [None, StepFailed("x"), BudgetExceeded("no price")])
def test_engine_names_no_ceiling_where_none_helps(error: PipelineError | None) -> None:
    assert more_room(error) == ""
