"""Reads published pages for tests: a small tree of elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"br", "col", "hr", "input", "link", "meta", "wbr"}


@dataclass
class Element:
    """One element."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    content: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        return [part for part in self.content if isinstance(part, Element)]

    def all(self, *tags: str) -> Iterator[Element]:
        """Yield the elements below it, in document order; all of them without `tags`."""
        for child in self.children:
            if not tags or child.tag in tags:
                yield child
            yield from child.all(*tags)

    def one(self, tag: str) -> Element:
        """The only element of that name."""
        found = list(self.all(tag))
        assert len(found) == 1, f"{len(found)} {tag} elements"
        return found[0]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.content)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self._open = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute stands twice in {tag}"
        made = Element(tag, {name: value or "" for name, value in attrs}, self._open)
        self._open.content.append(made)
        if tag not in _VOID:
            self._open = made

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.tag, f"</{tag}> closes <{self._open.tag}>"
        assert self._open.parent is not None
        self._open = self._open.parent

    def handle_data(self, data: str) -> None:
        self._open.content.append(data)


def read(page: bytes) -> Element:
    """The tree of a page; fails where elements do not nest."""
    reader = _Reader()
    reader.feed(page.decode("utf-8"))
    reader.close()
    assert reader.root is reader._open, f"<{reader._open.tag}> is never closed"
    return reader.root
