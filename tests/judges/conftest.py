"""Exports are judged by programs that others wrote: in the tier `judges`, where the program is found."""

from __future__ import annotations

import shutil

import pytest

from tests import tiers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if tiers.tier() != "judges":
        for item in items:
            if item.path.is_relative_to(__file__.rpartition("/")[0]):
                item.add_marker(pytest.mark.skip(reason="judged with --tier judges"))


@pytest.fixture
def soffice() -> str:
    """LibreOffice, without a screen."""
    found = shutil.which("soffice")
    if found is None:
        pytest.skip("LibreOffice (soffice) is not installed")
    return found
