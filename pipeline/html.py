"""Markup that is escaped by construction: text becomes markup only through `el` and `text`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

from pipeline.records.redaction import visible

_VOID = frozenset({"br", "col", "hr", "link", "meta", "wbr"})
#: Characters of a slug, at most.
_SLUG = 48
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:.-]*\Z")
#: Characters that neither HTML nor UTF-8 can carry: controls, lone surrogates, non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
#: A link inside the published folder: no scheme, no host, no absolute path; "../" only in front.
_LOCAL_LINK = re.compile(
    r"(?:\.\./)?(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?(?:#[A-Za-z0-9._-]+)?\Z"
)


class Html(str):
    """Text that is already markup. Only this module and the MathML parser make it."""

    __slots__ = ()


def clean(value: object) -> str:
    """Return the value as text that a UTF-8 page can carry; what it cannot becomes U+FFFD, what cannot be seen goes."""
    plain = str(value)
    if plain.isascii() and plain.isprintable():
        return plain
    return _UNFIT.sub("\ufffd", visible(plain).replace("\r\n", "\n").replace("\r", "\n"))


def text(value: object) -> Html:
    """Return the value as escaped text; markup passes unchanged."""
    return value if isinstance(value, Html) else Html(escape(clean(value), quote=False))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Return markup of the parts in their order; None and False are left out, lists are flattened."""
    return Html(str(text(between)).join(_flat(parts)))


def _flat(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Html):
            yield part
        elif isinstance(part, list | tuple):
            yield from _flat(part)
        elif part is not None and part is not False:
            yield text(part)


def el(tag: str, *content: object, **attributes: object) -> Html:
    """Return one element. `cls` is class; a trailing underscore is dropped; underscores become hyphens.

    Attributes that are None or False are left out, True has no value. Children are
    escaped unless they are markup.

    Raises:
        ValueError: A tag or attribute name is not a plain name, or a link leaves the folder.
    """
    if not _NAME.match(tag):
        raise ValueError(f"not an element name: {tag!r}")
    opening = Html(f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>")
    return opening if tag in _VOID else Html(f"{opening}{join(content)}</{tag}>")


def section(anchor: str, title: object, *content: object, cls: str | None = None) -> Html:
    """Return a section that is named by its heading."""
    return el("section", el("h2", title, id=anchor), content, cls=cls, aria_labelledby=anchor)


def count(number: int, noun: str) -> str:
    """Return a number and its noun: "1 lesson", "2 lessons"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = "class" if name == "cls" else name.rstrip("_").replace("_", "-")
    if not _NAME.match(name) or name.startswith("on") or name == "style":
        raise ValueError(f"not an attribute to publish: {name!r}")
    if value is True:
        return f" {name}"
    if name in ("href", "src") and not _LOCAL_LINK.match(str(value)):
        raise ValueError(f"a link that leaves the published folder: {value!r}")
    return f' {name}="{escape(clean(value), quote=True)}"'


def slug(title: str) -> str:
    """Return a file name part for a title: lower-case ASCII letters and digits, joined by hyphens.

    Cut at a word where it is too long; "lesson" where nothing is left.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii").lower()
    words = re.findall(r"[a-z0-9]+", plain)
    kept = ""
    for word in words:
        if kept and len(kept) + 1 + len(word) > _SLUG:
            break
        kept = f"{kept}-{word}" if kept else word[:_SLUG]
    return kept or "lesson"
