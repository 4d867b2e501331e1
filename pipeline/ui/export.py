"""A copy of runs as files: the same pages, read-only, with links that hold on a disk; to send to a colleague."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import re
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from pipeline.app.run_list import row_of
from pipeline.errors import ConfigError, PipelineError
from pipeline.store.reader import resolve
from pipeline.ui.desk import Desk
from pipeline.ui.layout import FOLDER, Here, render
from pipeline.ui.pages import PageRoute, up_from
from pipeline.ui.routes import error_data, find
from pipeline.ui.runs import row_data

#: Pages of one copy at most: of a run of 100,000 items the first ones.
MOST_PAGES = 5_000
#: Pages on which there is nothing but to decide.
_LIVE_ONLY = frozenset({"review", "conflict"})
_STATIC = ("desk.css", "favicon.svg")
_MOST_NAME = 120


@dataclass
class _Copy:
    """One copy being written."""

    desk: Desk
    folder: Path
    runs: Sequence[str]
    copied: str
    #: (path, query) of what is still to be written, and what was met already.
    waiting: deque[tuple[str, str]] = field(default_factory=deque)
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Links that lead nowhere, as there are too many pages.
    left_out: int = 0

    def link(self, here: str, path: str, query: Mapping[str, Any]) -> str:
        """Return the URL of a page's file from another page, and see to it that it is written."""
        if path == "":
            return f"{up_from(here)}index.html"
        found = find(path)
        own = any(path == f"runs/{run}" or path.startswith(f"runs/{run}/") for run in self.runs)
        if not own or found is None or found[0].name in _LIVE_ONLY:
            return "#"
        asked = urlencode({name: str(value) for name, value in query.items() if value not in (None, "")})
        if (path, asked) not in self.files:
            if len(self.files) >= MOST_PAGES:
                self.left_out += 1
                return "#"
            self.files[path, asked] = _file_name(path, asked)
            self.waiting.append((path, asked))
        return up_from(here) + quote(self.files[path, asked])

    def here(self, path: str, query: str = "") -> Here:
        """Return where a page is shown."""
        asked = dict(parse_qsl(query))
        return Here(path, asked, "", frozenset({""}), self.copied, lambda to, more: self.link(path, to, more))

    def write(self) -> None:
        """Write what was met, and what is met on the way."""
        while self.waiting:
            path, query = self.waiting.popleft()
            body = self._answer(path, query)
            target = self.folder / self.files[path, query]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)

    def _answer(self, path: str, query: str) -> bytes:
        found = find(path)
        assert found is not None
        route, parameters = found
        request = Request(
            {"type": "http", "method": "GET", "path": f"/{path}", "query_string": query.encode(), "headers": [],
             "path_params": parameters}
        )  # fmt: skip
        here = self.here(path, query)
        try:
            if isinstance(route, PageRoute):
                return render(route.template, route.data(self.desk, request), here).encode()
            # In a thread of its own: the caller may have a running event loop.
            with ThreadPoolExecutor() as pool:
                return pool.submit(asyncio.run, _body(route.answer(self.desk, request), request)).result()
        except PipelineError as error:
            return render("error.html", {"error": error_data(error), "newest": []}, here).encode()


def export(store: str | None, folder: Path, names: Sequence[str], when: str) -> tuple[int, int]:
    """Write the pages of runs into a new folder; index.html is the first.

    Args:
        names: As `resolve` takes them.
        when: The time of the copy, as people read it.

    Returns how many pages were written, and how many links lead to none as there are too many.

    Raises:
        RunNotFound: No such run.
        ConfigError: The folder is there and holds something.
    """
    desk = Desk(store)
    runs = list(dict.fromkeys(resolve(desk.store(), name) for name in names))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there and not empty.", code="export_folder_taken", hint="Name a new folder.")
    copy = _Copy(desk, folder, runs, when)
    (folder / "static").mkdir(parents=True, exist_ok=True)
    for name in _STATIC:
        shutil.copyfile(FOLDER / "static" / name, folder / "static" / name)
    rows = [row_data(row_of(desk.head(run))) for run in runs]
    (folder / "index.html").write_text(render("export.html", {"rows": rows}, copy.here("")), encoding="utf-8")
    copy.write()
    return len(copy.files) + 1, copy.left_out


def _file_name(path: str, query: str) -> str:
    """Return the file of a page: as deep as its path, so that what leads up from one leads up from the other."""
    route = find(path)
    plain = re.sub(r"[^A-Za-z0-9._/-]", "_", path)
    plain = "/".join(part if part.strip(".") else "_" for part in plain.split("/"))
    odd = plain != path or len(plain.rpartition("/")[2]) > _MOST_NAME
    name = plain[: len(plain) - len(plain.rpartition("/")[2]) + _MOST_NAME]
    if odd or query:
        name += f"-{hashlib.sha256(f'{path}?{query}'.encode()).hexdigest()[:12]}"
    kind = ".html"
    if route is not None and not isinstance(route[0], PageRoute):
        kind = "" if mimetypes.guess_type(path)[0] else route[0].suffix
    return name + kind


async def _body(response: Response, request: Request) -> bytes:
    """Return what a response sends."""
    found: list[bytes] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {}

    async def send(message: Message) -> None:
        found.append(message.get("body", b""))

    await response(request.scope, receive, send)
    return b"".join(found)
