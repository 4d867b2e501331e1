"""Charges of other writers: what cannot be read is unpriced, never an error and never $0."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.records.charge import Charge


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"low": "1"},
        {"state": "exact", "low": "much"},
        {"state": "exact", "tokens": 3},
        {"state": "exact", "parts": []},
    ],
)
def test_charge_that_cannot_be_read_is_unpriced(data: dict[str, Any]) -> None:
    charge = Charge.from_json(data)
    assert (charge.state, charge.high) == ("unpriced", None)
    assert "cannot be read" in charge.note
