"""Pages, their JSON, and errors, of the real server."""

from __future__ import annotations

from pathlib import Path
from time import process_time

from pipeline.errors import CheckpointCorrupt, ConfigError, RunLocked, RunNotFound, StoreError, WriteFailed
from pipeline.ui.routes import status_of
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


def test_number_of_any_length_is_not_found(root: Path, desk: Served) -> None:
    run = failed_run(root)
    for path in (f"runs/{run}/calls/", f"runs/{run}/frame/item/"):
        assert desk.get(f"{path}{'9' * 5000}").status == 404
        assert desk.get(f"{path}{'9' * 18}").status == 404


def test_name_of_any_length_is_not_found_in_a_moment(desk: Served) -> None:
    begun = process_time()
    assert desk.get(f"runs/{'a' * 30_000}").status == 404
    assert process_time() - begun < 2


def test_store_that_does_not_answer_is_no_fault_of_the_request() -> None:
    statuses = {
        StoreError: 503, WriteFailed: 503, RunNotFound: 404, RunLocked: 409, CheckpointCorrupt: 400, ConfigError: 400,
    }  # fmt: skip
    assert {cls: status_of(cls("")) for cls in statuses} == statuses
