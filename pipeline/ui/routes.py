"""The one table of what the desk answers: pages, writes, files, streams; each page as JSON too; and every error."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles

from pipeline import __version__
from pipeline.app.run_list import row_of
from pipeline.app.words import one_line, plain
from pipeline.errors import (
    CheckpointCorrupt,
    DecidedMeanwhile,
    PipelineError,
    RunExists,
    RunLocked,
    RunNotFound,
    SchemaTooNew,
    SettingsConflict,
    StoreError,
)
from pipeline.records.redaction import without_secrets
from pipeline.ui import call, costs, item, moments, new_run, questions, review, run, runs
from pipeline.ui.desk import MOST_NAME, NAME_COOKIE, Desk
from pipeline.ui.layout import FOLDER, NAVIGATION, Here, render
from pipeline.ui.pages import (
    Data,
    FormFields,
    PageAnswer,
    PageRoute,
    RawRoute,
    StreamRoute,
    WriteRoute,
    parse_form,
    up_from,
)
from pipeline.ui.stream import part_events, record_events

#: Whose routes there are: one module a line.
MODULES: tuple[Any, ...] = (
    runs,
    run,
    item,
    call,
    costs,
    moments,
    new_run,
    questions,
    review,
)  # fmt: skip
PAGES: tuple[PageRoute, ...] = tuple(page for module in MODULES for page in module.PAGES)
WRITES: tuple[WriteRoute, ...] = tuple(write for module in MODULES for write in module.WRITES)
RAWS: tuple[RawRoute, ...] = tuple(raw for module in MODULES for raw in module.RAWS)
STREAMS: tuple[StreamRoute, ...] = tuple(stream for module in MODULES for stream in module.STREAMS)
#: Every page's data stands below it under the page's own path.
API = "api/v1/"

_BY_NAME = {page.name: page for page in PAGES}
_NAVIGATION = frozenset(path for path, _ in NAVIGATION) & {page.path for page in PAGES}
#: What an error means to a browser; any other one is the request's.
_STATUS: Mapping[type[PipelineError], int] = {
    RunNotFound: 404, RunLocked: 409, RunExists: 409, SettingsConflict: 409, DecidedMeanwhile: 409,
    CheckpointCorrupt: 400, SchemaTooNew: 400, StoreError: 503,
}  # fmt: skip


class _Number(IntegerConvertor):
    """A number of a path: as long as any that means something here."""

    regex = "[0-9]{1,18}"


register_url_convertor("int", _Number())
_YEAR = 365 * 24 * 3600
Endpoint = Callable[[Request], Awaitable[Response]]


class PlainJson(JSONResponse):
    """JSON of a page's data; money becomes a number."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return json.dumps(content, default=plain, ensure_ascii=False, allow_nan=False).encode()


def application(desk: Desk) -> Starlette:
    """Return what answers for a desk; a guard goes around it."""
    routes: list[Route | Mount] = [
        Route("/healthz", _health),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
        Route(f"/{API}runs/{{run}}/events", _guarded(desk, lambda request: record_events(desk, request))),
        *(Route(f"/{stream.path}", _stream(desk, stream)) for stream in STREAMS),
        *(Route(f"/{raw.path}", _raw(desk, raw), methods=["GET"]) for raw in RAWS),
        *(Route(f"/{write.path}", _write(desk, write), methods=["POST"]) for write in WRITES),
        *(Route(f"/{API}{page.path}", _json(desk, page), methods=["GET"]) for page in PAGES),
        *(Route(f"/{page.path}", _page(desk, page), methods=["GET"]) for page in PAGES),
    ]

    async def missing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        # Files are served without the cookie, so their error names no runs.
        if error.status_code != 404 or request.scope["path"].startswith("/static/"):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        found = RunNotFound(f"There is no page {request.url.path}.", code="page_not_found")
        return await run_in_threadpool(_refused, desk, request, found)

    async def unexpected(request: Request, error: Exception) -> Response:
        what = f"Unexpected {type(error).__name__}: {one_line(error, 200)}"
        return await run_in_threadpool(_refused, desk, request, PipelineError(what, code="unexpected"), 500)

    made = Starlette(routes=routes, exception_handlers={HTTPException: missing, Exception: unexpected})
    # Where it would lead does not know the prefix of a proxy.
    made.router.redirect_slashes = False
    return made


@cache
def _readable() -> list[tuple[PageRoute | RawRoute, Route]]:
    routes: tuple[PageRoute | RawRoute, ...] = (*RAWS, *PAGES)
    return [(route, Route(f"/{route.path}", _health)) for route in routes]


def find(path: str) -> tuple[PageRoute | RawRoute, dict[str, Any]] | None:
    """Return what answers GET of a path, and the path's parameters; None: nothing does."""
    scope = {"type": "http", "method": "GET", "path": f"/{path}"}
    for found, route in _readable():
        match, more = route.matches(scope)
        if match == Match.FULL:
            return found, more["path_params"]
    return None


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


def here_of(desk: Desk, request: Request) -> Here:
    """Return where a request's page is shown."""
    return Here(
        request.scope["path"].removeprefix("/"), dict(request.query_params), desk.name(request), _NAVIGATION
    )  # fmt: skip


def _page(desk: Desk, page: PageRoute) -> Endpoint:
    def answer(request: Request) -> Response:
        return HTMLResponse(render(page.template, page.data(desk, request), here_of(desk, request)))

    return _guarded(desk, answer)


def _json(desk: Desk, page: PageRoute) -> Endpoint:
    return _guarded(desk, lambda request: PlainJson(page.data(desk, request)))


def _raw(desk: Desk, raw: RawRoute) -> Endpoint:
    return _guarded(desk, lambda request: raw.answer(desk, request))


def _stream(desk: Desk, stream: StreamRoute) -> Endpoint:
    return _guarded(desk, lambda request: part_events(desk, request, stream))


def _guarded(desk: Desk, answer: Callable[[Request], Response]) -> Endpoint:
    """Return the endpoint of what may wait for a store; its errors become a page, or JSON."""

    def tried(request: Request) -> Response:
        try:
            return answer(request)
        except PipelineError as error:
            return _refused(desk, request, error)

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(tried, request)

    return endpoint


def _write(desk: Desk, write: WriteRoute) -> Endpoint:
    def done(request: Request, body: bytes) -> Response:
        form = FormFields([])
        try:
            form = parse_form(body, request.headers.get("content-type", ""))
            went = _acted(desk, request, write, form)
        except PipelineError as error:
            return _shown_again(desk, request, write, form, error)
        if isinstance(went, PageAnswer):
            response: Response = HTMLResponse(render(went.template, went.data, here_of(desk, request)), went.status)
        elif request.headers.get("hx-request") == "true":
            response = Response(status_code=204, headers={"hx-redirect": _target(request, went)})
        else:
            response = RedirectResponse(_target(request, went), 303)
        if form.get("by"):
            response.set_cookie(
                NAME_COOKIE, quote(form["by"].strip()[:MOST_NAME]), _YEAR, httponly=True, samesite="strict"
            )
        return response

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(done, request, await request.body())

    return endpoint


def _acted(desk: Desk, request: Request, write: WriteRoute, form: FormFields) -> str | PageAnswer:
    """Do what a form asks for; where the second click of two comes too late, what the first one did is the answer.

    Raises:
        PipelineError: It is refused.
    """
    with desk.click((request.url.path, *((name, *form.all(name)) for name in form))) as click:
        before: str | PageAnswer | None = click.made
        try:
            went = write.act(desk, request, form)
        except (DecidedMeanwhile, RunLocked):
            if before is None:
                raise
            return before
        if isinstance(went, PageAnswer) and went.status >= 400:
            return before if before is not None and went.status == 409 else went
        click.made = went
    return went


def _target(request: Request, went: str) -> str:
    return up_from(request.scope["path"].removeprefix("/")) + went


def _shown_again(desk: Desk, request: Request, write: WriteRoute, form: FormFields, error: PipelineError) -> Response:
    """Return the page of a form that was refused, with what was typed and the reason above."""
    here, said = here_of(desk, request), error_data(error)
    if request.headers.get("hx-request") == "true":
        text = render("_say.html", {"error": said}, here)
        return HTMLResponse(f'<hx-partial id="say" hx-swap="innerHTML">{text}</hx-partial>', status_of(error))
    page = _BY_NAME[write.page]
    try:
        data = page.data(desk, request)
    except PipelineError as worse:
        return _refused(desk, request, worse)
    return HTMLResponse(render(page.template, data, here, error=said, form=form), status_of(error))


def status_of(error: PipelineError) -> int:
    """Return the HTTP status of an error."""
    return next((status for cls, status in _STATUS.items() if isinstance(error, cls)), 400)


def error_data(error: PipelineError) -> Data:
    """Return an error as pages and JSON say it: without keys and passwords."""
    words = {"code": error.code, "message": error.message, "hint": error.hint, "command": error.command}
    return {name: without_secrets(value) for name, value in words.items()}


def _refused(desk: Desk, request: Request, error: PipelineError, status: int = 0) -> Response:
    status = status or status_of(error)
    if request.scope["path"].startswith(f"/{API}"):
        return PlainJson({"error": error_data(error)}, status)
    data = {"error": error_data(error), "newest": _newest(desk) if status == 404 else []}
    return HTMLResponse(render("error.html", data, here_of(desk, request)), status)


def _newest(desk: Desk) -> list[Data]:
    """Return the three newest runs, shown under a wrong link."""
    try:
        rows = [row_of(head) for head in islice(desk.heads(), 3)]
        return [{"run_id": row.run_id, "name": runs.name_of(row)} for row in rows]
    except PipelineError:
        return []
