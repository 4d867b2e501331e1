"""stores.md names the columns of the views as they are, and its queries can be typed."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.store.sql.connections import close_all
from pipeline.store.url import open_store
from tests.journals import AT, started

TEXT = (Path(__file__).parents[3] / "devops/docs/stores.md").read_text()


@pytest.fixture
def link(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that holds one run."""
    open_store(f"sqlite:{tmp_path / 'courses.db'}").create(started(), [], at=AT)[1].close()
    close_all()
    with contextlib.closing(sqlite3.connect(tmp_path / "courses.db")) as found:
        yield found


@pytest.mark.parametrize("view", ["runs", "costs_by_day"])
def test_docs_name_all_columns_of_a_view_in_their_order(link: sqlite3.Connection, view: str) -> None:
    row = re.search(rf"^\| `{view}` \(view\) \| (.*) \|$", TEXT, re.MULTILINE)
    assert row
    columns = [column[0] for column in link.execute(f"SELECT * FROM {view}").description]
    assert re.findall(r"`(\w+)`", row[1])[: len(columns)] == columns


def test_docs_queries_run(link: sqlite3.Connection) -> None:
    queries = re.findall(r'"(SELECT [^"]+)"', TEXT)
    assert len(queries) >= 2
    runs, costs = (link.execute(query).fetchall() for query in queries[:2])
    assert [row[0] for row in runs] == ["20260109_143022"]
    assert costs == []
