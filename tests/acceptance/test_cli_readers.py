"""A course in a store that one may read and not write to: left as it is where it is complete, else said why not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import environment
from pipeline.store.sql.connections import close_all
from tests import other_user
from tests.other_user import NOBODY
from tests.said import Cli, Said
from tests.servers.postgres import Postgres, name_of
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql

COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "1"]


@pytest.fixture
def reader(postgres: Postgres, postgresql: str) -> Iterator[str]:
    """A role that may read the tables of a database, also later ones."""
    name = name_of(postgresql)
    role = f"reader_{name}"
    postgres.execute(name, f"CREATE ROLE {role} LOGIN")
    postgres.execute(name, f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}")
    yield postgresql.replace("tests@", f"{role}@")
    postgres.execute(name, f"DROP OWNED BY {role}")
    postgres.execute(name, f"DROP ROLE {role}")


def test_reader_of_a_server_is_told_that_a_course_is_complete(
    cli: Cli, postgresql: str, reader: str, out: Path
) -> None:
    assert cli(*COURSE, "--store", postgresql).code == 0
    (run,) = cli("list", "--json", "--store", postgresql).json()
    for command in (COURSE, ["lessons", "--resume", run["run_id"]]):
        said = cli(*command, "--store", reader)
        assert (said.code, said.err) == (0, "")
        assert f"already completed {run['run_id']}" in said.out
        assert f"Published: {out}" in said.out


def test_reader_of_a_server_is_told_why_an_open_course_cannot_go_on(
    cli: Cli, postgresql: str, reader: str, out: Path
) -> None:
    assert cli(*COURSE, "--until", "sow", "--store", postgresql).code == 0
    said = cli("lessons", "--resume", "latest", "--store", reader)
    assert said.code == 3
    assert "permission denied for table journals" in said.err
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES" in said.err


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that all may look into and its owner alone may change."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setattr(environment, "home", lambda: Path(name))
        yield Path(name)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_reader_of_a_disk_is_told_that_a_course_is_complete(cli: Cli, shown: Path, kind: str) -> None:
    store = f"{kind}:{shown}/runs"
    command = [*COURSE, "--out", f"{shown}/site", "--store", store]
    # Again, so that all that is imported late is: the other user may not be let into the folder of packages.
    assert [cli(*command).code for _ in range(2)] == [0, 0]
    close_all()
    for path in [shown, *shown.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0 and kind == "files":
            # Folders of somebody else's runs are not looked into.
            os.chown(path, NOBODY, NOBODY)
    said = as_other(cli, *command)
    for path in [shown, *shown.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    assert (said.code, said.err) == (0, "")
    assert "already completed" in said.out


def as_other(cli: Cli, *command: str) -> Said:
    """What a command says to another user than the owner of its files."""
    code, text, errors = other_user.as_other(lambda: "\0".join(map(str, cli(*command)))).split("\0")
    return Said(int(code), text, errors)
