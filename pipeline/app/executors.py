"""The executor that `--executor` names: whether workers can share the run's store, and a client while a run goes."""

from __future__ import annotations

import ipaddress
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline import __version__
from pipeline.app.workers import Watch, how_to_start, watched
from pipeline.clock import SystemClock
from pipeline.environment import VARIABLES
from pipeline.errors import ConfigError, ExecutorLost
from pipeline.extras import not_installed
from pipeline.settings import LessonsOptions

if TYPE_CHECKING:
    from pipeline.engine.events import Emitter
    from pipeline.engine.setup import Definition, Setup

LOCAL = "dask:local"
_SCHEME = "dask://"
#: How long a scheduler may take to answer, in seconds.
_CONNECT_SECONDS = 10
#: Worker processes of dask:local.
_PROCESSES = 2


def check_executor(options: LessonsOptions) -> None:
    """Refuse, before anything is opened, what cannot work.

    Raises:
        ConfigError: The executor has no such name, its extra is not installed, or it cannot share the store.
    """
    name = options.executor
    if name is None:
        return
    from pipeline.engine.remote.coordinator import check_options, check_store

    host = _address(name)[0]
    check_store(options.store_url, near=False)
    if options.store_url.startswith("sqlite:") and not _is_here(host):
        raise ConfigError(
            f"A sqlite: store lies on this host, and {name} has workers elsewhere.",
            hint="Take --store postgresql://… or s3://…, or --executor dask:local.",
        )
    check_options({"batch": options.batch})
    if options.dry_run:
        # Nothing is sent anywhere.
        return
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise not_installed("dask", "--executor") from None


def _address(name: str) -> tuple[str, int]:
    """Host and port of dask://HOST:PORT; ("", 0) for dask:local.

    Raises:
        ConfigError: It is neither.
    """
    if name == LOCAL:
        return "", 0
    with suppress(ValueError):
        parts = urlsplit(name)
        plain = parts.path in ("", "/") and not re.search("[@?#]", name)
        if name.startswith(_SCHEME) and parts.hostname and parts.port and plain:
            return parts.hostname, parts.port
    if "@" in name:
        raise ConfigError(
            "--executor takes no user and no password: a dask scheduler asks for none.",
            hint="There are dask://HOST:PORT and dask:local. Keep a scheduler on a network of your own.",
        )
    raise ConfigError(
        f"--executor is {re.split('[?#]', name)[0]!r}; there are dask://HOST:PORT and dask:local, without settings.",
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
def on_executor(options: LessonsOptions, definition: Definition, setup: Setup) -> Iterator[None]:
    """While a run goes, its maps go to the executor that was named; nothing happens where none was.

    Raises:
        ExecutorLost: No scheduler answers there.
        ConfigError: The workers cannot be sent what the tasks need.
    """
    if options.executor is None:
        yield
        return
    from pipeline.engine.remote.coordinator import maps_on

    with ExitStack() as stack:
        executor = _client(options, setup.emit, stack).get_executor(pure=False)
        setup.map_runner = maps_on(executor, options.store_url, definition, setup)
        yield


def _client(options: LessonsOptions, emit: Emitter, stack: ExitStack) -> Any:
    """A client of the cluster, closed with the stack."""
    import distributed

    dask: Any = distributed
    # What becomes of the cluster is said once, by the run. Its parts have loggers, and levels, of their own.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    host, port = _address(options.executor or LOCAL)
    if not host:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-dask-", ignore_cleanup_errors=True))
        # A password that was given with the command is not sent, but lent to its own children.
        env = {str(VARIABLES["store"]): options.store_url}
        cluster = stack.enter_context(_cluster(_PROCESSES, -(-options.at_once // _PROCESSES), folder, env))
        client = stack.enter_context(dask.Client(cluster))
        stack.enter_context(watched(Watch(client, "", emit, SystemClock())))
        return client
    try:
        client = dask.Client(f"tcp://{host}:{port}", timeout=_CONNECT_SECONDS)
    except OSError:
        raise ExecutorLost(
            f"No scheduler answers at {host}:{port}.",
            hint=f"Start one in the folder of this program on its host: {how_to_start(f'scheduler --port {port}')}, "
            f"then workers: {how_to_start(f'worker {host}:{port}')}. Or take --executor dask:local.",
        ) from None
    stack.callback(_close, client)
    watch = Watch(client, f"{host}:{port}", emit, SystemClock())
    if watch.begin():
        _check_program(client, f"{host}:{port}")
    stack.enter_context(watched(watch))
    return client


def this_version() -> str:
    """The version of the program that answers; asked of workers."""
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
            hint=f"Start each of them with PYTHONPATH={Path(__file__).parents[2]}",
        ) from None
    if theirs != __version__:
        raise ConfigError(f"The workers at {where} have version {theirs} of this program; this is {__version__}.")


def _cluster(workers: int, threads: int, folder: str, env: Mapping[str, str]) -> Any:
    """Workers of this host's own, as processes with so many threads each."""
    import distributed

    dask: Any = distributed
    return dask.LocalCluster(
        n_workers=workers, threads_per_worker=threads, processes=True, host="127.0.0.1", dashboard_address=None,
        # Without a port of any kind it takes 8787, and complains where somebody has it.
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}, silence_logs=logging.CRITICAL, local_directory=folder,
        env=dict(env),
    )  # fmt: skip


def _close(client: Any) -> None:
    """Close a client; one whose scheduler is gone has nobody to take leave of."""
    seconds = _CONNECT_SECONDS if client.status == "running" else 0
    with suppress(Exception):
        client.close(timeout=seconds)
