"""People and places of lessons, so that no model always takes the same ones."""

from __future__ import annotations

import re

from pipeline.frameworks import REGIONS, Region

#: Those of Scotland: the shipped question bank draws from them.
PEOPLE, PLACES = REGIONS["scotland"].people, REGIONS["scotland"].places
#: Those of them where boats come and go.
HARBOURS = (
    "Aberdeen", "Arbroath", "Campbeltown", "Dunoon", "Greenock", "Kirkwall", "Lerwick", "Oban", "Peterhead", "Portree",
    "Stornoway", "Stranraer", "Ullapool", "Wick",
)  # fmt: skip
#: A name of any region, in a text.
EVERY_PERSON = tuple(sorted({name for region in REGIONS.values() for name in region.people}))
PERSON = re.compile(rf"\b(?:{'|'.join(EVERY_PERSON)})\b")
_EVERY_PLACE = {place for region in REGIONS.values() for place in region.places if place[0].isupper()}
NAME = re.compile(rf"\b(?:{'|'.join(sorted({*EVERY_PERSON, *_EVERY_PLACE}))})\b")
#: Steps through the lists: without a common factor with their lengths, so that every name has its turn.
_STEP = 7


def cast(order: int, region: Region) -> tuple[list[str], list[str]]:
    """Return six people and three places for the lesson with this order."""
    return _pick(region.people, order, 6), _pick(region.places, order, 3)


def _pick(names: tuple[str, ...], order: int, number: int) -> list[str]:
    start = order * number
    return [names[(start + index) * _STEP % len(names)] for index in range(number)]
