"""What a page, a write and a plain answer are: what the modules of the desk hand to the table of routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from pipeline.errors import ConfigError
from pipeline.ui.desk import Desk

#: Fields of a form at most, each selected run is one; and parts of one that carries files.
_MOST_FIELDS, _MOST_PARTS = 20_000, 100
#: What a page shows: JSON values only. The same answers `/api/v1/` and the path of the page.
Data = dict[str, Any]


@dataclass(frozen=True)
class PageRoute:
    """A page: data, then a template that renders exactly this."""

    #: Below the root, without a slash in front: "runs/{run}/items/{item:path}".
    path: str
    data: Callable[[Desk, Request], Data]
    template: str
    #: What a `WriteRoute` names it by.
    name: str


@dataclass(frozen=True)
class PageAnswer:
    """What a write may answer instead of going somewhere: a page of its own."""

    template: str
    data: Data
    status: int = 200


@dataclass(frozen=True)
class WriteRoute:
    """What a form does: POST alone. It returns the path to go to, below the root ("runs/ID"), or a `PageAnswer`.

    Where it raises a PipelineError, `page` is shown again with the error above it, and `form` holds what was typed.
    A field `by` is kept as the name of who is at the desk.
    """

    path: str
    act: Callable[[Desk, Request, FormFields], str | PageAnswer]
    page: str


@dataclass(frozen=True)
class RawRoute:
    """What is no page: a file to download, a document in a frame, a piece of a long text. GET alone."""

    path: str
    answer: Callable[[Desk, Request], Response]
    name: str
    #: What its file ends in where a copy of the pages holds it.
    suffix: str = ".txt"


#: What redraws a part of a page: (desk, run, query of the page) → the data of its template, as `part`.
PartData = Callable[[Desk, str, Mapping[str, str]], Data]


@dataclass(frozen=True)
class StreamRoute:
    """What keeps pages up to date: server-sent events with the parts of a page whose HTML changed.

    A page connects to it by `live` in its data: {"path": …, "seq": …}; its path and query come along.
    """

    path: str
    #: id of an element → template (`part` is its data, `run` the run) and what makes the data.
    parts: Mapping[str, tuple[str, PartData]] = field(default_factory=dict)
    #: Of a page whose elements come and go: (desk, query of the page) → id, template and data of each.
    changes: Callable[[Desk, Mapping[str, str]], Iterable[tuple[str, str, Data]]] | None = None
    #: Seconds between two looks.
    every: float = 0.5


class FormFields(Mapping[str, str]):
    """The fields of a form: the last value of each, files as text; `all` gives every value of one."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields: dict[str, list[str]] = {}
        for name, value in fields:
            self._fields.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> str:
        return self._fields[name][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def all(self, name: str) -> list[str]:
        """Return every value of a field, in the order of the form."""
        return self._fields.get(name, [])


def parse_form(body: bytes, content_type: str) -> FormFields:
    """Return the fields of a form's body; a file is its text.

    Raises:
        ConfigError: It is no form, has too many fields, or a file of it is no text in UTF-8.
    """
    message = Message()
    message["content-type"] = content_type
    try:
        if message.get_content_type() == "application/x-www-form-urlencoded":
            fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
            return FormFields(fields)
        boundary = message.get_boundary()
        if message.get_content_type() == "multipart/form-data" and boundary:
            return FormFields(list(_parts(body, boundary.encode())))
    except UnicodeError as error:
        text = "What was sent cannot be read as text in UTF-8."
        raise ConfigError(text, code="form_unreadable", hint="Save the file as UTF-8.") from error
    except ValueError as error:
        raise ConfigError("The form has too many fields.", code="form_unreadable") from error
    raise ConfigError("What was sent is no form.", code="form_unreadable")


def _parts(body: bytes, boundary: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each part; email.parser takes a minute for what this does in a moment."""
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary, _MOST_PARTS + 2)
    if len(pieces) > _MOST_PARTS + 2:
        raise ValueError
    for piece in pieces[1:]:
        head, _, value = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = BytesHeaderParser().parsebytes(head).get_param("name", header="content-disposition")
        if isinstance(name, str):
            yield name, value.decode("utf-8-sig")


def url_to(path: str, query: Mapping[str, Any] | None = None, *, here: str = "") -> str:
    """Return a path below the root as a relative URL, so that it holds behind any prefix.

    Args:
        path: Without a slash in front; "" is the root.
        query: Empty and missing values are left out.
        here: The path of the page that the URL stands on, likewise below the root.
    """
    return up_from(here) + place(path, query)


def place(path: str, query: Mapping[str, Any] | None = None) -> str:
    """Return a path below the root with its query, quoted: what a `WriteRoute` returns to go there."""
    asked = {name: str(value) for name, value in (query or {}).items() if value not in (None, "")}
    return quote(path, safe="/~:@!$&'()*+,;=") + (f"?{urlencode(asked)}" if asked else "")


def up_from(here: str) -> str:
    """Return the way from a page to the root."""
    return "../" * here.count("/") or "./"
