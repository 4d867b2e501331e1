"""Stores that are not there, or are empty: said so, with the store's name and the option that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.clock import SystemClock
from pipeline.store.sql.backend import open_sql
from pipeline.store.url import open_store
from tests.said import Cli
from tests.sample_runs import completed_run
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql

LESSONS = "./pipeline.sh lessons --subject mathematics --level national_5"


@pytest.fixture(params=["files", "sqlite", "postgresql", "s3"])
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has made."""
    if request.param == "s3":
        return f"{request.getfixturevalue('objects')}-typo"
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql"))
    return f"{request.param}:{tmp_path}/none"


def test_store_that_is_not_there_is_not_said_to_be_whole(nowhere: str, cli: Cli, tmp_path: Path) -> None:
    for arguments in (
        ["check", "--store", nowhere],
        ["check", "latest", "--store", nowhere],
        ["info", "--store", nowhere],
        ["copy", nowhere, f"files:{tmp_path}/copy"],
    ):
        said = cli("store", *arguments)
        assert (said.code, said.out) == (3, "")
        assert f"There is no store at {nowhere}." in said.err
    assert [each.name for each in tmp_path.iterdir()] == []


def test_empty_store_is_whole(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.db").touch()
    cli("store", "upgrade", "--store", f"sqlite:{tmp_path}/empty.db")
    for url in (f"files:{tmp_path}/empty", f"sqlite:{tmp_path}/empty.db"):
        assert cli("store", "check", "--store", url).out == "No damage found.\n"
        assert cli("store", "copy", url, f"files:{tmp_path}/copy").code == 0


@pytest.mark.parametrize("chosen", [[], ["--resumable"], ["--status", "failed"], ["--subject", "physics"]])
def test_listing_of_no_runs_names_the_store_and_how_to_fill_it(
    nowhere: str, cli: Cli, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cli("list", *chosen, "--store", nowhere)
    monkeypatch.setenv("PIPELINE_STORE", nowhere)
    for said in (first, cli("list", *chosen)):
        assert said.code == 0
        assert f"There is no store at {nowhere} yet. Start one: {LESSONS} --store {nowhere}\n" in said.out


def test_listing_of_an_empty_store_says_that_no_run_matches(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "No run matches.\n" in cli("list", "--resumable", "--store", f"files:{tmp_path}/empty").out


def test_listing_of_an_empty_store_names_it_where_it_is_another_than_the_default(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my runs").mkdir()
    url = f"'files:{tmp_path}/my runs'"
    assert f"No runs yet in {url}. Start one: {LESSONS} --store {url}\n" in cli("list", "--store", url[1:-1]).out
    for default in (None, environment.default_store()):
        monkeypatch.delenv("PIPELINE_STORE", raising=False)
        said = cli("list", *(["--store", default] if default else []))
        assert f"No runs yet. Start one: {LESSONS}\n" in said.out


def test_run_that_is_not_there_is_said_with_the_store_that_was_looked_at(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/none.db"
    for command in (["status"], ["log"], ["cost"], ["lessons", "--resume"]):
        said = cli(*command, "2026", "--store", url)
        assert said.code == 3
        assert f"There is no run '2026' in {url}." in said.err
        assert f"pipeline.sh list --store {url}` shows the runs there are." in said.err
    (told,) = cli("lessons", "--resume", "2026", "--json", "--store", url).json()
    assert told["error"]["message"] == f"There is no run '2026' in {url}."
    none = cli("status", "latest", "--store", url).err
    assert f"There is no run yet in {url}.\n" in none
    assert f"lessons --subject mathematics --level national_5 --store {url}` makes one.\n" in none
    other = cli("run", "devops/docs/examples/word_count.py:PIPELINE", "--resume", "latest", "--store", url).err
    assert f"pipeline.sh list --store {url}` shows the runs there are." in other, "a course is none of that pipeline"


def test_run_that_is_not_there_is_said_without_the_default_store(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_STORE")
    said = cli("status", "2026")
    assert "There is no run '2026'.\n" in said.err
    assert "pipeline.sh list` shows the runs there are." in said.err


def test_command_that_a_hint_names_looks_into_the_same_store(cli: Cli, tmp_path: Path) -> None:
    file, store = "devops/docs/examples/word_count.py", f"files:{tmp_path}/other"
    assert cli("run", file, "--param", 'texts={"a": "b c"}', "--store", store).code == 0
    (run,) = (head.run_id for head in open_store(store).heads())
    texts = ("--param", 'texts={"a": "b"}')
    for more in ((), ("--json",)):
        said = cli("run", file, "--resume", run, "--store", store, *texts, *more)
        assert said.code == 2
        assert f"./pipeline.sh fork {run} --store {store} --set params.texts=VALUE" in said.out + said.err
    path = tmp_path / "other" / run / "journal.jsonl"
    path.write_bytes(path.read_bytes()[1:])
    assert f"`./pipeline.sh log {run} --store {store}`" in cli("run", file, "--resume", run, "--store", store).err


def test_copy_into_or_out_of_nothing_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    url = f"files:{tmp_path}/empty"
    for pair in ((url, "memory:"), ("memory:", url)):
        said = cli("store", "copy", *pair)
        assert (said.code, said.out) == (3, "")
        assert "A memory: store is lost when this command ends." in said.err


def test_run_to_copy_that_is_not_there_is_said_with_where_it_was_looked_for(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = cli("store", "copy", f"files:{tmp_path}/empty", f"files:{tmp_path}/other", "2026")
    assert f"There is no run '2026' in files:{tmp_path}/empty." in said.err


def test_check_says_where_it_is_that_all_runs_share_what_is_damaged(cli: Cli, tmp_path: Path) -> None:
    store = open_sql(f"sqlite:{tmp_path}/runs.db", SystemClock())
    day = SystemClock().now().date().isoformat()
    assert store.account().reserve("me", Decimal(1), SystemClock().now(), Decimal(2))
    store.backend.put_if(f"account/{day}", b"junk", None)
    said = cli("store", "check", "--store", store.url)
    assert said.code == 3
    assert "1 fault in the store's own records." in said.err
    assert "--resume" not in said.err
    assert f"store: The account of {day} is damaged." in said.out


def test_check_of_a_whole_store_says_so_to_programs_too(cli: Cli, root: Path) -> None:
    run = completed_run(root)
    for arguments, name in (((), None), ((run,), run)):
        (row,) = cli("store", "check", *arguments, "--json").json()
        assert (row["damaged"], row["run"], row["store"]) == (False, name, f"files:{root}")
