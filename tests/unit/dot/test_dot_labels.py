"""Edge labels as choices."""

from __future__ import annotations

import pytest

from pipeline.dot.labels import accelerator, chosen, normal_label, without_key


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


CHOICES, TARGETS = ("[A] Approve", "Revise it", "Reject"), ("ship", "write", "end")


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ("[a] approve", 0), ("approve", 0), ("a", 0), ("A", 0), ("ship", 0), ("yes", 0), ("app", 0), ("revise  IT", 1),
        ("rev", 1), ("write", 1), ("no", 2), ("r", None), ("re", None), ("later", None), ("", None),
    ],
)  # fmt: skip
def test_choice_that_a_person_means(said: str, choice: int | None) -> None:
    assert chosen(said, CHOICES, TARGETS) == ("" if choice is None else CHOICES[choice])
    assert chosen(said, ()) == said


def test_no_is_one_of_several_that_say_no() -> None:
    assert chosen("no", ("Ship", "Decline")) == "Decline"
    assert chosen("n", ("Next", "No")) == ""
