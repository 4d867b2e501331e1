"""Every topic that is shipped is clean, in a few draws; `bank check` draws 200."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.bank.topic import Bank
from pipeline.lessons.checks_topics import examine


@pytest.mark.parametrize("path", Bank().paths.values(), ids=lambda path: path.stem)
def test_shipped_topics_are_clean(path: Path) -> None:
    assert examine(path, 2).findings == []
