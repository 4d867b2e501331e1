"""Edge labels as choices: the key a person types, and the text two labels are compared by."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

#: "[K] text", "K) text", "K - text"; "[K]eep" is a word whose first letter is the key.
_KEYED = re.compile(r"\s*(?:\[([^\]\s]{1,8})\]\s*|([^\W_]{1,3})\)\s*|([^\W_]{1,3})\s+-\s+)(?=\S|$)")

#: Words that say yes, and that say no.
YES = frozenset({"y", "yes", "true", "ok", "okay", "confirm", "confirmed", "approve", "approved", "accept"})
NO = frozenset({"n", "no", "false", "cancel", "decline", "declined", "reject", "rejected", "deny"})


def accelerator(label: str) -> str:
    """Return the key before a label, in upper case; else its first letter or digit; "" if it has none."""
    if found := _KEYED.match(label):
        return (found[1] or found[2] or found[3]).upper()
    return next((letter.upper() for letter in label if letter.isalnum()), "")


def without_key(label: str) -> str:
    """Return the label without its key: "[Y] Yes, go on" → "Yes, go on"; "[R]etry" → "Retry"."""
    found = _KEYED.match(label)
    if found is None:
        return label.strip()
    rest = label[found.end() :]
    if found[1] and found[0].endswith("]") and rest[:1].isalpha():
        return (found[1] + rest).strip()
    return rest.strip() or label.strip()


def normal_label(label: str) -> str:
    """Return the label as it is compared: without its key, in lower case, with single spaces."""
    return " ".join(without_key(label).lower().split())


def agreeing(choices: Sequence[str]) -> str:
    """Return the choice that says yes, else the first that does not say no, else the first; "" of none."""
    yes = (choice for choice in choices if _first_word(choice) in YES)
    return next(yes, "") or next((choice for choice in choices if not says_no(choice)), next(iter(choices), ""))


def chosen(text: str, choices: Sequence[str], targets: Sequence[str] = ()) -> str:
    """Return the choice that a person means: itself, its label, target or key, its yes or no, or its first letters.

    Args:
        targets: Where each choice leads.

    Returns:
        "" if it is none of them, or may be several; the text itself if there are no choices.
    """
    wanted, folded, plain = text.strip(), text.strip().casefold(), normal_label(text)
    if not choices or not wanted:
        return wanted
    target_of = dict(zip(choices, targets or choices, strict=True))
    ways: tuple[Callable[[str], bool], ...] = (
        lambda choice: choice.strip().casefold() == folded,
        lambda choice: normal_label(choice) == plain,
        lambda choice: target_of[choice].casefold() == folded,
        lambda choice: without_key(choice) != choice.strip() and accelerator(choice).casefold() == folded,
        lambda choice: accelerator(choice).casefold() == folded,
        lambda choice: any(normal_label(choice) in words and plain in words for words in (YES, NO)),
        lambda choice: normal_label(choice).startswith(folded),
    )
    found = next((found for way in ways if (found := [choice for choice in choices if way(choice)])), [])
    return found[0] if len(found) == 1 else ""


def says_no(choice: str) -> bool:
    """Return whether a choice says no."""
    return _first_word(choice) in NO


def _first_word(choice: str) -> str:
    return normal_label(choice).partition(" ")[0]
