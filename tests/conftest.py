"""What holds for every test: no credentials, no network beyond this machine; and which tests begin first."""

from __future__ import annotations

import ipaddress
import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from pipeline.clock import SystemClock
from tests import tiers
from tests.longest import FIRST, SOURCE_READERS, UNCOUNTED

# How long an example takes, or is drawn, says something about the machine, not about the code; and the
# build server should find the same today as yesterday.
hypothesis.settings.register_profile(
    "project",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("project")

#: Variables that could hand a test somebody's account, or steer it away from its own settings.
_PREFIXES = ("ANTHROPIC_", "CLAUDE", "OPENAI_", "PIPELINE_")

#: A day in UTC that has no more seconds left is over before the next test begins: limits and sums are of a day.
_LAST_SECONDS = 60

#: How many examples a law is tried on at least.
_LEAST_EXAMPLES = 5

ROOT = Path(__file__).resolve().parents[1]

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex


class NetworkForbidden(AssertionError):
    """A test tried to reach beyond this machine."""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_remote(sock: socket.socket, address: Any) -> None:
    if sock.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(str(address[0])):
        raise NetworkForbidden(f"a test may not connect to {address!r}")


def _guarded_connect(sock: socket.socket, address: Any) -> None:
    _refuse_remote(sock, address)
    _connect(sock, address)


def _guarded_connect_ex(sock: socket.socket, address: Any) -> int:
    _refuse_remote(sock, address)
    return _connect_ex(sock, address)


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(_PREFIXES):
            monkeypatch.delenv(name)
    # Whoever runs tests side by side may set it; tables then fit a screen that nobody looks at.
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True, scope="session")
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs keep outside their stores goes away with the tests; commands started by them inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _one_day() -> None:
    clock = SystemClock()
    now = clock.now()
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    if (left := (midnight - now).total_seconds()) < _LAST_SECONDS:
        clock.wait(threading.Event(), left)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", _guarded_connect_ex)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=tiers.TIERS, default=tiers.tier(), help="which tests: see tests/tiers.py")


def pytest_configure(config: pytest.Config) -> None:
    # Whoever runs the tests in the background may have them ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Tests start this program some thousand times: without bytecode each start would compile it all.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ[tiers.VARIABLE] = config.getoption("--tier")


def _is_short(item: pytest.Item) -> bool:
    """Return whether a test belongs to the short tier."""
    names = set(getattr(item, "fixturenames", ()))
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return (
        not names & tiers.SERVERS
        and not any(isinstance(value, str) and value in tiers.SERVER_PARAMETERS for value in parameters)
        and item.get_closest_marker("long") is None
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that are not short before they are imported."""
    if tiers.tier() != "short" or collection_path.suffix != ".py":
        return None
    return None if tiers.is_short(os.path.relpath(collection_path, config.rootpath)) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier; the longest begin first, so that no core is idle at the end."""
    if tiers.tier() == "short":
        long = [item for item in items if not _is_short(item)]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if _is_short(item)]
        for item in items:
            _draw_less(getattr(item, "obj", None))
    _deal(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _deal(items: list[pytest.Item], workers: int) -> None:
    """Put the longest files first in each of the slices of this list that `worksteal` gives the workers."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for place, names in enumerate([*((name,) for name in FIRST), SOURCE_READERS]):
        for name in names:
            shares[place % workers] += files.pop(ROOT / name, [])
    rest = [item for found in files.values() for item in found]
    left = len(items)
    for place, share in enumerate(shares):
        size = left // (workers - place)
        left -= size
        taken = max(0, size - len(share))
        share += rest[:taken]
        del rest[:taken]
    items[:] = [*itertools.chain(*shares), *rest]


def _draw_less(test: Any) -> None:
    """Have a test of a law draw fewer examples."""
    name = "_hypothesis_internal_use_settings"
    if (given := getattr(test, name, None)) is not None:
        fewer = max(min(given.max_examples, _LEAST_EXAMPLES), given.max_examples // tiers.FEWER_EXAMPLES)
        setattr(getattr(test, "__func__", test), name, hypothesis.settings(given, max_examples=fewer))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have counted: the figures of a release."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"figures: {value}")
    unseen = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    if unseen := [why for why in unseen if "page test: " in why]:
        why = unseen[0].rpartition("page test: ")[2].rstrip("')")
        terminalreporter.write_line(f"{len(unseen)} page tests did not run: {why}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lines are not counted where they are only repeated."""
    if item.location[0] not in UNCOUNTED:
        return (yield)
    here, threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(here)
        threading.settrace(threads)
