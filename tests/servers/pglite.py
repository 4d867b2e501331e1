"""A real PGlite on this machine: PostgreSQL in one process of Node, which lets in one connection at a time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.sql.connections import close_all
from pipeline.store.sql.postgres import connected

#: Where devops/check.sh puts what tests/servers/pglite/package.json names.
PACKAGES = Path(sys.prefix) / "pglite" / "node_modules" / "@electric-sql"


class PGlite:
    """A server over a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # An empty database as initdb leaves it; to make one here takes ten seconds.
        with tarfile.open(PACKAGES / "pglite-prepopulatedfs" / "dist" / "prepopulatedfs.tgz") as made:
            made.extractall(folder / "data", filter="data")
        self.start()

    def start(self) -> None:
        script = PACKAGES / "pglite-socket" / "dist" / "scripts" / "server.js"
        command = ["node", str(script), "--db", str(self.folder / "data"), "--port", "0"]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._server = subprocess.Popen(command, cwd=self.folder, text=True, **pipes)
        assert self._server.stdout
        said = ""
        for row in self._server.stdout:
            said += row
            if found := re.search(r'listening on .*"port":(\d+)', row):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(said)
        # It tells of every connection, and would wait for somebody to listen.
        self._listener = threading.Thread(target=self._server.stdout.read, daemon=True)
        self._listener.start()

    def kill(self) -> None:
        self._server.kill()
        self._server.wait()
        self._listener.join()
        assert self._server.stdout
        self._server.stdout.close()

    @property
    def bare(self) -> str:
        """The URL as PGlite's own documents write it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"{self.bare}?single=1&unsafe=1"

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run statements without values, once the server has noticed that nothing else is connected any more."""
        import psycopg

        connect = partial(psycopg.connect, self.bare, autocommit=True, prepare_threshold=None)
        with connected(connect, (psycopg.OperationalError,)) as link:
            cursor = link.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        """Leave no table in it; there is this one database."""
        self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


@pytest.fixture(scope="session")
def pglite_server() -> Iterator[PGlite]:
    """One server for the whole session, if it is installed."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("PGlite needs node and npm, which are not installed")
    if not PACKAGES.is_dir():
        assert not os.environ.get("CI"), f"devops/check.sh has not installed {PACKAGES}"
        pytest.skip("PGlite is not installed; devops/check.sh does it")
    with tempfile.TemporaryDirectory(prefix="pglite") as folder:
        server = PGlite(Path(folder))
        yield server
        close_all()
        server.kill()


@pytest.fixture
def pglite(pglite_server: PGlite) -> Iterator[PGlite]:
    """The server, with nothing in it."""
    pglite_server.empty()
    yield pglite_server
    close_all()
