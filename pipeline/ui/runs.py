"""Runs: which there are, newest first."""

from __future__ import annotations

from itertools import islice

from starlette.requests import Request

from pipeline.app.run_list import row_of
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, PageRoute, StreamRoute, WriteRoute
from pipeline.ui.shapes import run_word

#: Rows of a page.
ROWS = 50


def _runs(desk: Desk, request: Request) -> Data:
    rows = [row_of(head) for head in islice(desk.heads(), ROWS)]
    return {
        "rows": [
            {**row.to_json(), "word": run_word(row.status, row.status_detail), "possibly_usd": row.possibly_usd}
            for row in rows
        ]
    }


PAGES = (PageRoute("", _runs, "runs.html", "runs"),)
WRITES: tuple[WriteRoute, ...] = ()
STREAMS: tuple[StreamRoute, ...] = ()
