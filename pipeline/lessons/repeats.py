"""Check 26 over a course: questions that come back in another lesson; told, never blocked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CHECK = 26
#: Share of five-word runs two stems may have in common.
MOST_ALIKE = 0.6
_RUN = 5


def course_repeats(lessons: Sequence[Mapping[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Findings by the order of the later lesson, in the form of a lesson's own findings.

    Args:
        lessons: Lessons as JSON, in order.
    """
    seen: dict[str, str] = {}
    runs: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    stems: list[tuple[int, str, frozenset[tuple[str, ...]]]] = []
    found: dict[int, list[dict[str, Any]]] = {}
    for order, item, stem in _stems(lessons):
        words = re.findall(r"\w+", stem.casefold())
        plain, name = " ".join(words), f"lesson {order} {item}"
        own = frozenset(tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1))
        earlier = seen.get(plain) or _alike(order, own, runs, stems)
        if earlier and not earlier.startswith(f"lesson {order} "):
            found.setdefault(order, []).append(_finding(item, earlier, same=plain in seen))
        seen.setdefault(plain, name)
        for run in own:
            runs[run].append(len(stems))
        stems.append((order, name, own))
    return found


def _stems(lessons: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, str]]:
    for lesson in lessons:
        for card in lesson["cards"]:
            for item in card.get("items", ()):
                yield lesson["order"], item["id"], item["stem"]


def _alike(
    order: int,
    own: frozenset[tuple[str, ...]],
    runs: Mapping[tuple[str, ...], list[int]],
    stems: Sequence[tuple[int, str, frozenset[tuple[str, ...]]]],
) -> str | None:
    shared = Counter(index for run in own if run in runs for index in runs[run])
    for index, common in shared.most_common():
        other_order, name, other = stems[index]
        if other_order != order and common / len(own | other) > MOST_ALIKE:
            return name
    return None


def _finding(item: str, earlier: str, *, same: bool) -> dict[str, Any]:
    how = "the same question as" if same else "nearly the same question as"
    return {
        "check": CHECK,
        "severity": "W",
        "where": item,
        "text": f"{how} {earlier}",
    }
