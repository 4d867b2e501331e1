"""What a format adds to checkpoint.json, and how often it wants it written. A view: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.records.run import RunState

#: The document and the state that it was made from → the document to write.
Shape = Callable[[dict[str, Any], RunState], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class HeadView:
    """checkpoint.json as a format wants it."""

    #: Adds names to the document; pure, and in time that grows with the state only.
    shape: Shape
    #: Write it at every checkpoint, not only now and then; a large one a little less often.
    each_checkpoint: bool = False
