"""Edge labels as choices."""

from __future__ import annotations

import pytest

from pipeline.dot.labels import accelerator, normal_label, without_key


@pytest.mark.parametrize(
    ("label", "key", "plain", "normal"),
    [
        ("[Y] Yes, go on", "Y", "Yes, go on", "yes, go on"),
        ("[ok]  Fine", "OK", "Fine", "fine"),
        ("[R]etry", "R", "Retry", "retry"),
        ("[A]pprove all", "A", "Approve all", "approve all"),
        ("y) Yes", "Y", "Yes", "yes"),
        ("N - No", "N", "No", "no"),
        ("Approve", "A", "Approve", "approve"),
        ("  Fix   It ", "F", "Fix   It", "fix it"),
        ("re-do all", "R", "re-do all", "re-do all"),
        ("[A]", "A", "[A]", "[a]"),
        ("…", "", "…", "…"),
        ("", "", "", ""),
        ("3) Third", "3", "Third", "third"),
        ("[not a key] x", "N", "[not a key] x", "[not a key] x"),
    ],
)
def test_label_as_a_choice(label: str, key: str, plain: str, normal: str) -> None:
    assert (accelerator(label), without_key(label), normal_label(label)) == (key, plain, normal)
