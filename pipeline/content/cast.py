"""People and places of lessons, so that no model always takes the same ones."""

from __future__ import annotations

PEOPLE = (
    "Aileen", "Amara", "Angus", "Ayesha", "Beth", "Bilal", "Callum", "Catriona", "Chidi", "Craig", "Daniel", "Eilidh",
    "Ewan", "Farah", "Fergus", "Fiona", "Grace", "Hamish", "Hana", "Iain", "Imran", "Isla", "Jakub", "Kirsty", "Lewis",
    "Mairi", "Marek", "Megan", "Mohammed", "Morag", "Nadia", "Niamh", "Oliwia", "Priya", "Rory", "Ruaridh", "Samira",
    "Sandeep", "Sorcha", "Struan", "Tomasz", "Wei", "Yusuf", "Zara",
)  # fmt: skip
PLACES = (
    "Aberdeen", "Arbroath", "Aviemore", "Ayr", "Campbeltown", "Dingwall", "Dumfries", "Dunblane", "Dundee", "Dunoon",
    "Edinburgh", "Elgin", "Falkirk", "Fort William", "Galashiels", "Glasgow", "Greenock", "Inverness", "Kelso",
    "Kilmarnock", "Kirkcaldy", "Kirkwall", "Lerwick", "Livingston", "Motherwell", "Oban", "Paisley", "Perth",
    "Peterhead", "Portree", "Stirling", "Stornoway", "Stranraer", "Thurso", "Ullapool", "Wick",
)  # fmt: skip
#: Steps through the lists: without a common factor with their lengths, so that every name has its turn.
_STEP = 7


def cast(order: int) -> tuple[list[str], list[str]]:
    """Return six people and three places for the lesson with this order."""
    return _pick(PEOPLE, order, 6), _pick(PLACES, order, 3)


def _pick(names: tuple[str, ...], order: int, number: int) -> list[str]:
    start = order * number
    return [names[(start + index) * _STEP % len(names)] for index in range(number)]
