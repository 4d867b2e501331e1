"""The desk in a real browser: its first page is there, whole, and without a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browsers import Window
from tests.sample_runs import completed_run, failed_run


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_is_shown(root: Path, window: Window, scheme: str) -> None:
    failed_run(root)
    completed_run(root)
    window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page = window.open()
    assert page.locator("h1").inner_text() == "Runs"
    assert page.locator("tbody tr").count() == 2
    for width in (320, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert window.sideways() <= 0
    assert window.findings() == []
