"""Edge labels as choices: the key a person types, and the text two labels are compared by."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def says_no(choice: str) -> bool:
    """Return whether a choice says no."""
    return _first_word(choice) in NO


def _first_word(choice: str) -> str:
    return normal_label(choice).partition(" ")[0]
