r"""Money of any region, read as pounds: code that reads printed mathematics knows one sign of money, "£".

Dollars of a course of dollars are read as £5, and its pounds as ₤5: the foreign money that they are there. What code
says of a text changes them back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.frameworks import FOREIGN_POUND, region_of

_POUND = "£"
#: A sign of money in a text, in a formula with its backslash: a dollar before a number, or alone as the name of a unit.
_MONEY = {
    "$": re.compile(r"\\?\$(?=\s?[-−]?\.?\d)|\\\$|(?<=[\s/(])\$(?=[\s).,;:/]|$)"),
    "€": re.compile("€"),
}
#: Signs of money that a course without a currency of its own may use.
_SIGNS = re.compile(r"£|€|\$(?=\s?\d)")


def sign_of(course: Mapping[str, Any], lesson: Any) -> str:
    """Return the sign of money of a course; where it has none of its own, the first that its lesson prints."""
    if own := region_of(course).currency:
        return own
    found = _SIGNS.search(json.dumps(lesson, ensure_ascii=False))
    return found[0] if found else _POUND


def in_pounds(value: Any, sign: str) -> Any:
    """Return a JSON value in whose texts a sign of money is £."""
    if sign == _POUND:
        return value
    return changed_texts(value, lambda text: _MONEY[sign].sub(_POUND, text.replace(_POUND, FOREIGN_POUND)))


def in_own(value: Any, sign: str) -> Any:
    """Return what was said of texts in pounds, with their own sign of money again."""
    if sign == _POUND:
        return value
    inside = r"\$" if sign == "$" else sign
    return changed_texts(
        value, lambda text: text.replace(r"\pounds ", inside).replace(_POUND, sign).replace(FOREIGN_POUND, _POUND)
    )


def changed_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with all its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: changed_texts(item, change) for key, item in value.items()}
    return [changed_texts(item, change) for item in value] if isinstance(value, list) else value
