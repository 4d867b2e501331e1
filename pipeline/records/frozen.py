"""Frozen dataclasses of which a run makes thousands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A frozen dataclass, as the type checker sees to.

    At run time nothing watches over it: one that is watched takes four times as long to make.
    """
    return dataclass(slots=True)(cls)
