"""The shape of every fact; the kinds that there are stand in kinds.py."""

from __future__ import annotations

from typing import ClassVar

from pipeline.records.frozen import frozen


@frozen
class Fact:
    """One fact; subclasses give `kind`."""

    kind: ClassVar[str] = ""
    #: The field that is JSON text (bytes): long, and rarely read back. It is written last.
    text: ClassVar[str] = ""
