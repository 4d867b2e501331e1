"""Time travel from the command line: forks that know this product, and the code of a run's pipeline for its replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.travel.fork import Forked


def fork(store: Store, run: str, *, at: str, assignments: Sequence[str], into: Store | None = None) -> Forked:
    """Fork a run; assignments are KEY=VALUE as typed.

    Raises:
        ConfigError, RunNotFound, SecretRefused, CheckpointCorrupt: See travel.fork.
    """
    from pipeline import __version__
    from pipeline.travel.fork import fork as made
    from pipeline.travel.given import read_assignments

    return made(store, run, at=at, changes=read_assignments(assignments), into=into, product=__version__)
