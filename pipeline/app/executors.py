"""The executor that `--executor` names: whether workers can share the run's store, and a client while a run goes."""

from __future__ import annotations

import ipaddress
import logging
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline import __version__
from pipeline.clock import Clock, SystemClock
from pipeline.environment import VARIABLES
from pipeline.errors import ConfigError, ExecutorLost
from pipeline.extras import not_installed
from pipeline.settings import Execution
from pipeline.store.address import parse_store_url

if TYPE_CHECKING:
    from pipeline.engine.events import Emitter
    from pipeline.engine.setup import Definition, Setup

LOCAL = "dask:local"
#: How long a scheduler may take to answer, in seconds.
_CONNECT_SECONDS = 10
#: Worker processes of dask:local.
_PROCESSES = 2
#: Seconds between two looks at the workers; a missing one is reported after so long: one that restarts is back by then.
_LOOK_SECONDS, _REPORTED_AFTER = 1.0, 5.0


def check_executor(execution: Execution) -> None:
    """Refuse, before anything is opened, what cannot work.

    Raises:
        ConfigError: The executor has no such name, its extra is not installed, or it cannot share the store.
    """
    name = execution.executor
    if name is None:
        return
    from pipeline.engine.remote.coordinator import check_options, check_store

    host = _address(name)[0]
    check_store(execution.store_url, near=False)
    if parse_store_url(execution.store_url).file is not None and not _is_here(host):
        raise ConfigError(
            f"A sqlite: store is a file of this host, and {name} has workers elsewhere.",
            code="store_not_shared",
            hint="Use --store postgresql://… or s3://…, or --executor dask:local.",
        )
    check_options({"batch": execution.batch})
    if execution.dry_run:
        # Nothing is sent anywhere.
        return
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise not_installed("dask", "--executor") from None


def _address(name: str) -> tuple[str, int]:
    """Return host and port of dask://HOST:PORT; ("", 0) for dask:local.

    Raises:
        ConfigError: It is neither.
    """
    if name == LOCAL:
        return "", 0
    with suppress(ValueError):
        parts = urlsplit(name)
        plain = parts.path in ("", "/") and not re.search("[@?#]", name)
        if name.startswith("dask://") and parts.hostname and parts.port and plain:
            return parts.hostname, parts.port
    if "@" in name:
        raise ConfigError(
            "--executor takes no user or password: dask schedulers do not use them.",
            code="invalid_executor",
            hint="Use dask://HOST:PORT or dask:local. Keep a scheduler on a private network.",
        )
    raise ConfigError(
        f"--executor is {re.split('[?#]', name)[0]!r}; use dask://HOST:PORT or dask:local, without settings.",
        code="invalid_executor",
        hint="dask://HOST:PORT is what `dask scheduler` prints as tcp://HOST:PORT; dask:local starts workers here.",
    )


def _is_here(host: str) -> bool:
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def on_executor(execution: Execution, definition: Definition, setup: Setup) -> Iterator[None]:
    """Hand a run's maps to the executor that was named, while it goes; without one nothing happens.

    Raises:
        ExecutorLost: No scheduler answers there.
        ConfigError: The workers cannot be sent what the tasks need.
    """
    if execution.executor is None:
        yield
        return
    from pipeline.engine.remote.coordinator import maps_on

    with ExitStack() as stack:
        executor = _client(execution, setup.emit, stack).get_executor(pure=False)
        setup.map_runner = maps_on(executor, execution.store_url, definition, setup)
        yield


def _client(execution: Execution, emit: Emitter, stack: ExitStack) -> Any:
    """Return a client of the cluster, closed with the stack."""
    import distributed

    dask: Any = distributed
    # What becomes of the cluster is reported once, by the run. Its parts have loggers, and levels, of their own.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    host, port = _address(execution.executor or LOCAL)
    if not host:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-dask-", ignore_cleanup_errors=True))
        # A password that was given with the command is not sent, but lent to its own children.
        env = {str(VARIABLES["store"]): execution.store_url}
        cluster = stack.enter_context(_cluster(_PROCESSES, -(-execution.at_once // _PROCESSES), folder, env))
        client = stack.enter_context(dask.Client(cluster))
        client.register_plugin(_without_profiler())
        stack.enter_context(watched(WorkerWatch(client, "", emit, SystemClock())))
        return client
    try:
        client = dask.Client(f"tcp://{host}:{port}", timeout=_CONNECT_SECONDS)
    except OSError:
        raise ExecutorLost(
            f"No scheduler answers at {host}:{port}.",
            code="no_scheduler",
            hint=f"Start one in the folder of this program on its host: {_how_to_start(f'scheduler --port {port}')}, "
            f"then workers: {_how_to_start(f'worker {host}:{port}')}. Or use --executor dask:local.",
        ) from None
    stack.callback(_close, client)
    watch = WorkerWatch(client, f"{host}:{port}", emit, SystemClock())
    if watch.begin():
        _check_program(client, f"{host}:{port}")
    client.register_plugin(_without_profiler())
    stack.enter_context(watched(watch))
    return client


def _without_profiler() -> Any:
    """Return a plugin that stops the profiler of each worker with Python 3.11, also of those that come later.

    It looks at the frames of all threads a hundred times a second, and in that Python the garbage collector may run
    meanwhile: then the worker hangs for ever (python/cpython#106883).
    """
    import distributed

    dask: Any = distributed

    # Made here, so that it is sent by value: a worker may lack this program, and says so over the first task.
    class WithoutProfiler(dask.WorkerPlugin):  # type: ignore[misc]
        name, idempotent = "pipeline-without-profiler", True

        def setup(self, worker: Any) -> None:
            import sys

            profiler = worker.periodic_callbacks.pop("profile", None) if sys.version_info[:2] == (3, 11) else None
            if profiler is not None:
                profiler.stop()

    return WithoutProfiler()


def _cluster(workers: int, threads: int, folder: str, env: dict[str, str]) -> Any:
    """Return workers of this host's own, as processes with so many threads each."""
    import distributed

    dask: Any = distributed
    return dask.LocalCluster(
        n_workers=workers, threads_per_worker=threads, processes=True, host="127.0.0.1", dashboard_address=None,
        # Without a port of any kind it takes 8787, and complains where that is taken.
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}, silence_logs=logging.CRITICAL, local_directory=folder,
        env=env,
    )  # fmt: skip


def this_version() -> str:
    """Return the version of the program that answers; asked of workers."""
    return __version__


def _check_program(client: Any, where: str) -> None:
    """Refuse a cluster whose processes cannot do a task of ours.

    Raises:
        ConfigError: They do not find this program, or have another version.
    """
    from pipeline.engine.remote.messages import missing_module

    try:
        theirs = client.submit(this_version, pure=False).result(timeout=_CONNECT_SECONDS)
    except TimeoutError:
        # They have other work; a task that is lost says why.
        return
    except Exception as error:
        missing = missing_module(error)
        if missing is None:
            raise ExecutorLost(f"The workers at {where} do not answer: {type(error).__name__}.") from None
        raise ConfigError(
            f"The scheduler or the workers at {where} do not find this program (module {missing}).",
            code="program_not_found",
            hint=f"Start each of them with PYTHONPATH={Path(__file__).parents[2]}",
        ) from None
    if theirs != __version__:
        raise ConfigError(f"The workers at {where} have version {theirs} of this program; this is {__version__}.",
                          code="other_version")  # fmt: skip


def _close(client: Any) -> None:
    """Close a client, without waiting for a scheduler that is gone."""
    seconds = _CONNECT_SECONDS if client.status == "running" else 0
    with suppress(Exception):
        client.close(timeout=seconds)


def _how_to_start(what: str) -> str:
    """Return what to type in the folder of this program, on any host: `scheduler --port N`, `worker HOST:PORT`."""
    return f"`PYTHONPATH=$PWD .venv/bin/dask {what}`"


class WorkerWatch:
    """Report that a dask cluster has no worker while tasks wait for one, what to do, and when one has come."""

    def __init__(self, client: Any, address: str, emit: Emitter, clock: Clock) -> None:
        """Look at nothing yet.

        Args:
            client: Of the cluster; its futures are the tasks that are out.
            address: HOST:PORT of the scheduler; "": the workers are this command's own.
        """
        self._client = client
        self._address = address
        self._emit = emit
        self._clock = clock
        #: Since when tasks have waited without a worker; None: they have not. Whether it was reported.
        self._since: float | None = None
        self._reported = False

    def begin(self) -> bool:
        """Return whether there is a worker; report at once, before a task is out, that there is none."""
        self._reported = not self._workers()
        if self._reported:
            self._since = self._clock.monotonic()
            text = f"The scheduler at {self._address} has no worker yet; tasks wait for one."
            self._emit("note", text=f"{text} {self._what_to_do()}")
        return not self._reported

    def look(self) -> None:
        """Report what has changed."""
        if self._workers():
            if self._reported:
                self._emit("note", text="A worker has connected; the run continues.")
            self._since, self._reported = None, False
            return
        waiting = sum(future.status == "pending" for future in list(self._client.futures.values()))
        if not waiting or self._reported:
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= _REPORTED_AFTER:
            self._reported = True
            where = f"at {self._address}" if self._address else "there"
            tasks = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
            self._emit("note", text=f"No worker is {where}, and {tasks} for one. {self._what_to_do()}")

    def _workers(self) -> int:
        # Without the list of them, which may be long.
        return int(self._client.scheduler_info(n_workers=0).get("n_workers", 0))

    def _what_to_do(self) -> str:
        if not self._address:
            return "A new one is being started; the run continues by itself once it is there."
        command = _how_to_start(f"worker {self._address}")
        return f"Start one in the folder of this program: {command}. The run then continues by itself."


@contextmanager
def watched(watch: WorkerWatch) -> Iterator[None]:
    """Look at the workers again and again meanwhile."""
    done, clock = threading.Event(), SystemClock()

    def look_on() -> None:
        while not clock.wait(done, _LOOK_SECONDS):
            # A scheduler that is gone, or a client that has just been closed, is reported by the run.
            with suppress(Exception):
                watch.look()

    threading.Thread(target=look_on, name="workers", daemon=True).start()
    try:
        yield
    finally:
        done.set()
