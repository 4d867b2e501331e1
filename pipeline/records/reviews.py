"""What people decide about what tasks made, and what holds of it after all of their decisions.

A decision is bound to the hash of what was decided upon: the value as the task made it, or a person's edit of it. Of
a value that was made again an earlier approval says nothing, and an earlier edit is in conflict with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

APPROVE, EDIT, REDO, UNDO = "approve", "edit", "redo", "undo"
#: Of an edit whose value was made again: it holds on; the new value takes its place. A further edit decides it too.
KEEP, TAKE = "keep", "take"

#: How a value stands.
CONFLICT, OPEN, APPROVED, EDITED, TO_REDO, MISSING = "conflict", "open", "approved", "edited", "redo", "missing"
#: These need no decision.
DECIDED = frozenset({APPROVED, EDITED, TO_REDO})


class Review(NamedTuple):
    """One decision about what a task made."""

    #: Hash of what was decided upon.
    question: str
    choice: str
    #: The edit, by the hash of its blob: of `edit` and `keep`.
    edit: str
    note: str
    by: str
    at: str
    seq: int


@dataclass(frozen=True, slots=True)
class ReviewState:
    """How a task's value stands."""

    status: str
    #: Hash of what is to be decided upon, or was: the edit in force, else the value that was made.
    content: str = ""
    #: The edit in force, or the one in conflict with the value that was made since; "": none.
    edit: str = ""
    #: The decision that holds of the content, or made the edit that is in conflict; None: there is none.
    last: Review | None = None
    #: Who approved or edited the content, in order.
    names: Sequence[str] = ()
    #: The decision that can be taken back; None: none can.
    undoable: Review | None = None
    #: How many decisions there are.
    count: int = 0

    @property
    def mark(self) -> str:
        """Return what differs once anything was decided or made again."""
        return f"{self.content}.{self.count}"


def standing(made: str, seq: int, found: Sequence[Review]) -> ReviewState:
    """Return how a value stands.

    Args:
        made: Its hash as the task made it last; "": it is not made, or is being made again.
        seq: When it was.
        found: All decisions about it, oldest first.
    """
    kept = _not_undone(found)
    #: Edit → the made value that it stands on.
    base: dict[str, str] = {}
    edit = ""
    for each in kept:
        if each.choice == EDIT:
            edit, base[each.edit] = each.edit, base.get(each.question, each.question)
        elif each.choice == KEEP:
            edit, base[each.edit] = each.edit, each.question
        elif each.choice == TAKE:
            edit = ""
    if not made:
        return ReviewState(MISSING, edit=edit, count=len(found))
    own = {made, *(name for name, value in base.items() if value == made)}
    # What a decision was about that has been made again since cannot be taken back by itself.
    last = kept[-1] if kept else None
    undoable = last if last and last.question in own and not _is_spent(last, seq) else None
    if edit and base[edit] != made:
        author = next(each for each in reversed(kept) if each.edit == edit and each.choice == EDIT)
        return ReviewState(CONFLICT, made, edit, author, (author.by,), undoable, len(found))
    content = edit or made
    about = [each for each in kept if content in (each.edit, each.question) and each.choice not in (TAKE, EDIT)]
    about += [each for each in kept if each.choice == EDIT and each.edit == content]
    about.sort(key=kept.index)
    decided = about[-1] if about and not _is_spent(about[-1], seq) else None
    if decided is None:
        return ReviewState(OPEN, content, edit, None, (), undoable, len(found))
    status = TO_REDO if decided.choice == REDO else EDITED if edit else APPROVED
    names = tuple(dict.fromkeys(each.by for each in about if each.choice != REDO))
    return ReviewState(status, content, edit, decided, names, undoable, len(found))


def _not_undone(found: Sequence[Review]) -> list[Review]:
    kept: list[Review] = []
    for each in found:
        if each.choice != UNDO:
            kept.append(each)
        elif kept:
            kept.pop()
    return kept


def _is_spent(review: Review, seq: int) -> bool:
    """Return whether a value was made again as a decision asked, be it the same as before."""
    return review.choice == REDO and review.seq < seq
