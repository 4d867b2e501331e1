"""British and American spelling: words of the one in texts that are written in the other."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: A word of the other kind, and the replacement for its groups: organized → organised.
_Kinds = tuple[tuple[re.Pattern[str], str], ...]

#: American word → British.
_AMERICAN: Mapping[str, str] = {
    "center": "centre", "centers": "centres", "centered": "centred",
    "centimeter": "centimetre", "centimeters": "centimetres", "kilometer": "kilometre", "kilometers": "kilometres",
    "liter": "litre", "liters": "litres", "fiber": "fibre", "fibers": "fibres", "theater": "theatre",
    "theaters": "theatres", "gray": "grey", "math": "maths", "aluminum": "aluminium", "defense": "defence",
    "offense": "offence", "cozy": "cosy", "plow": "plough", "skeptical": "sceptical", "jewelry": "jewellery",
    "sidewalk": "pavement", "soccer": "football", "vacation": "holiday", "gasoline": "petrol", "cookie": "biscuit",
    "cookies": "biscuits", "dime": "coin", "nickels": "coins", "trapezoid": "trapezium", "factoring": "factorising",
    "counterclockwise": "anticlockwise", "simplifed": "simplified", "airplane": "aeroplane", "apartment": "flat",
    "grade level": "stage",
}  # fmt: skip
#: British word → American, where the other direction has them as one word each.
_BRITISH: Mapping[str, str] = {
    "centre": "center", "centres": "centers", "centred": "centered", "metre": "meter", "metres": "meters",
    "centimetre": "centimeter", "centimetres": "centimeters", "millimetre": "millimeter",
    "millimetres": "millimeters", "kilometre": "kilometer", "kilometres": "kilometers", "litre": "liter",
    "litres": "liters", "millilitre": "milliliter", "millilitres": "milliliters", "fibre": "fiber", "fibres": "fibers",
    "theatre": "theater", "theatres": "theaters", "grey": "gray", "maths": "math", "aluminium": "aluminum",
    "defence": "defense", "offence": "offense", "cosy": "cozy", "plough": "plow", "sceptical": "skeptical",
    "jewellery": "jewelry", "anticlockwise": "counterclockwise", "aeroplane": "airplane",
    "programme": "program", "programmes": "programs", "licence": "license", "tyre": "tire", "tyres": "tires",
    "kerb": "curb", "cheque": "check", "petrol": "gasoline", "lorry": "truck", "lorries": "trucks",
    "pavement": "sidewalk", "analyse": "analyze", "analysed": "analyzed", "analysing": "analyzing",
    "standard form": "scientific notation", "practise": "practice", "practised": "practiced",
    "practising": "practicing", "sulphur": "sulfur", "haemoglobin": "hemoglobin", "oestrogen": "estrogen",
    "foetus": "fetus", "mould": "mold", "mum": "mom",
}  # fmt: skip
#: American kind of word → what is British in it: organized, behavior, traveled.
_AMERICAN_KINDS: _Kinds = (
    # Size, prize and seize are so in British English, too; capitalize() is code.
    (re.compile(r"(?<![.\w])(?!(?!\w*(?:pha|the|nta)siz)\w*siz|(?:ap)?priz|seiz|maiz|assiz|baiz|beliz)"
                r"(\w+[iy])z(e[drs]?|ers|ing|ations?|ational|able)\b(?!\()", re.I), r"\1s\2"),
    (re.compile(r"\b((?:behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|rum|sav|tum|vap|arm|parl)o)"
                r"(r(?:s|ed|ing|ful|less|able|ably|hood|hoods|al|ite|ites)?)\b", re.I), r"\1u\2"),
    (re.compile(r"\b((?:travel|cancel|model|label|level|signal|fuel|total|dial|tunnel|marvel|quarrel))"
                r"(ed|ing|ers?)\b", re.I), r"\1l\2"),
)  # fmt: skip
_BRITISH_KINDS: _Kinds = (
    # Exercise, raise, precise and their like are so in America, too: only these stems.
    (re.compile(r"\b((?:organi|recogni|reali|factori|rationali|generali|summari|minimi|maximi|optimi|normali|standardi"
                r"|visuali|categori|memori|emphasi|critici|apologi|speciali|characteri|symboli|utili|ideali|equali"
                r"|neutrali|ioni|oxidi|polari|crystalli|vapori|magneti|energi|synthesi|hypothesi|digiti|computeri"
                r"|prioriti|economi|finali|moderni|populari|stabili|urbani|coloni|industriali|civili|mobili|harmoni))"
                r"s(e[drs]?|ers?|ing|ations?|ational|able)\b", re.I), r"\1z\2"),
    (re.compile(r"\b((?:behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|rum|sav|tum|vap|arm|parl)o)u"
                r"(r(?:s|ed|ing|ful|less|able|ably|hood|hoods|al|ite|ites)?)\b", re.I), r"\1\2"),
    (re.compile(r"\b((?:travel|cancel|model|label|level|signal|fuel|total|dial|tunnel|marvel|quarrel))l"
                r"(ed|ing|ers?)\b", re.I), r"\1\2"),
)  # fmt: skip
#: Spelling of a text → words that are foreign to it, a pattern of them, and kinds of words.
_FOREIGN = {
    spelling: (words, re.compile(rf"\b(?:{'|'.join(words)})\b", re.I), kinds)
    for spelling, words, kinds in (
        ("british", _AMERICAN, _AMERICAN_KINDS),
        ("american", _BRITISH, _BRITISH_KINDS),
    )
}


def respelt(text: str, spelling: str) -> str:
    """Return a text in a spelling; "" changes nothing."""
    if spelling not in _FOREIGN:
        return text
    words, pattern, kinds = _FOREIGN[spelling]
    text = pattern.sub(lambda found: _cased(words[found[0].lower()], found[0]), text)
    for kind, right in kinds:
        text = kind.sub(right, text)
    return text


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[0].isupper() else word


def misspelt(text: str, spelling: str) -> tuple[str, str] | None:
    """Return a word of a text that is foreign to a spelling, and the right one; None where there is none.

    Args:
        spelling: "british", "american", or "" for any.
    """
    if spelling not in _FOREIGN:
        return None
    words, pattern, kinds = _FOREIGN[spelling]
    if found := pattern.search(text):
        return found[0], words[found[0].lower()]
    kind = ((each.search(text), right) for each, right in kinds)
    return next(((match[0], match.expand(right)) for match, right in kind if match), None)
