"""Pages, their JSON, and errors, of the real server."""

from __future__ import annotations

from pathlib import Path

from tests.desks import Served
from tests.sample_runs import completed_run, failed_run


def test_page_and_json_show_the_same_runs(root: Path, desk: Served) -> None:
    runs = {failed_run(root), completed_run(root)}
    assert {row["run"] for row in desk.data("")["rows"]} == runs
    page = desk.get("").page
    assert {row.attributes.get("id", "") for row in page.all("tr")} >= {f"run-{run}" for run in runs}


def test_what_there_is_not_is_404_and_names_the_newest_runs(root: Path, desk: Served) -> None:
    run = failed_run(root)
    got = desk.get("nothing/here")
    assert (got.status, run in got.text) == (404, True)
    assert desk.get("api/v1/nothing").json["error"]["code"] == "page_not_found"


def test_health_needs_no_token(desk: Served) -> None:
    assert desk.ask("GET", "/healthz").json["status"] == "ok"
