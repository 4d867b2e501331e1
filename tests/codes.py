"""Errors in tests, told apart by their codes: pytest.raises(StoreError, check=coded("not_of_thread"))."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def coded(code: str, **data: Any) -> Callable[[Any], bool]:
    """Return a check for errors of this code whose data say all this."""
    return lambda error: (error.code, error.data | data) == (code, error.data)
