"""The guide to providers says what their records say."""

from __future__ import annotations

from pipeline.providers import PROVIDERS
from tests.documents import codes, table, text_of

GUIDE = "providers.md"


def test_docs_name_every_provider_with_what_it_can_do() -> None:
    shown = {
        codes(row[0])[0]: row[1:]
        for row in table(GUIDE, "Provider", "Log in", "Install", "Batches", "Counts tokens", "Prices")
    }
    assert shown == {
        each.name: [
            each.login, f"`{each.extra}`" if each.extra else "–", "yes" if each.batches else "no",
            "yes" if each.counts else "no", f"`{each.prices}`",
        ]
        for each in PROVIDERS.values()
    }  # fmt: skip
    text = text_of(GUIDE)
    assert all(each.named("claude-sonnet-5-5") in text for each in PROVIDERS.values())
