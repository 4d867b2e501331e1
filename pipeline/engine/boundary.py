"""Who else stands at a run's boundaries: told of each recorded end, in its thread, and may record more."""

from __future__ import annotations

from typing import Protocol

from pipeline.engine.recorder import Recorder


class Boundary(Protocol):
    """What a format does where a visit has ended."""

    def begun(self, recorder: Recorder) -> None:
        """An owner has the run and starts its loop now."""

    def ended(self, path: str) -> None:
        """A visit's attempt has ended, and that is recorded."""
