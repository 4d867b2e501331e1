"""What holds of a value after people decided about it: approvals and edits are bound to what they were about."""

from __future__ import annotations

import pytest

from pipeline.records.reviews import Review, ReviewState, standing

MADE, AGAIN = "made-1", "made-2"


def after(*decisions: str, made: str = MADE, seq: int = 1) -> ReviewState:
    """How a value stands after decisions "CHOICE QUESTION [EDIT] BY", recorded as 10, 11, …"""
    found = []
    for number, text in enumerate(decisions, 10):
        choice, question, *edit, by = text.split()
        found.append(Review(question, choice, "".join(edit), "", by, f"at {number}", number))
    return standing(made, seq, found)


@pytest.mark.parametrize(
    ("decisions", "made", "seq", "status", "content", "names"),
    [
        ([], MADE, 1, "open", MADE, ()),
        (["approve made-1 A"], MADE, 1, "approved", MADE, ("A",)),
        # Made again: the approval was of another text.
        (["approve made-1 A"], AGAIN, 20, "open", AGAIN, ()),
        (["edit made-1 e1 A"], MADE, 1, "edited", "e1", ("A",)),
        (["edit made-1 e1 A", "edit e1 e2 B"], MADE, 1, "edited", "e2", ("B",)),
        (["edit made-1 e1 A", "approve e1 B"], MADE, 1, "edited", "e1", ("A", "B")),
        (["edit made-1 e1 A"], AGAIN, 20, "conflict", AGAIN, ("A",)),
        (["edit made-1 e1 A", "keep made-2 e1 B"], AGAIN, 1, "edited", "e1", ("A", "B")),
        (["edit made-1 e1 A", "take made-2 B"], AGAIN, 1, "open", AGAIN, ()),
        (["edit made-1 e1 A", "edit made-2 e2 B"], AGAIN, 1, "edited", "e2", ("B",)),
        # Kept once, then made again once more: again a conflict.
        (["edit made-1 e1 A", "keep made-2 e1 B"], "made-3", 20, "conflict", "made-3", ("A",)),
        (["redo made-1 A"], MADE, 1, "redo", MADE, ()),
        # Made as asked, and it came out the same: nobody has approved it.
        (["redo made-1 A"], MADE, 20, "open", MADE, ()),
        (["approve made-1 A", "redo made-1 B"], MADE, 1, "redo", MADE, ("A",)),
        (["approve made-1 A", "undo made-1 B"], MADE, 1, "open", MADE, ()),
        (["edit made-1 e1 A", "edit e1 e2 A", "undo e2 A"], MADE, 1, "edited", "e1", ("A",)),
        (["edit made-1 e1 A"], "", 0, "missing", "", ()),
    ],
)
def test_standing_follows_from_what_was_decided_about_which_version(
    decisions: list[str], made: str, seq: int, status: str, content: str, names: tuple[str, ...]
) -> None:
    found = after(*decisions, made=made, seq=seq)
    assert (found.status, found.content, tuple(found.names)) == (status, content, names)


def test_only_decisions_about_the_present_version_can_be_taken_back() -> None:
    assert after().undoable is None
    assert (after("approve made-1 A").undoable or after()).by == "A"  # type: ignore[union-attr]
    assert after("approve made-1 A", made=AGAIN, seq=20).undoable is None
    assert after("edit made-1 e1 A", made=AGAIN, seq=20).undoable is None
    assert after("redo made-1 A", seq=20).undoable is None
    assert after("approve made-1 A", "undo made-1 A").undoable is None


def test_mark_differs_once_anything_was_decided_or_made_again() -> None:
    marks = [after(), after(made=AGAIN), after("approve made-1 A"), after("approve made-1 A", "undo made-1 A")]
    assert len({found.mark for found in marks}) == len(marks)
