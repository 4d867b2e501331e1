"""`ui` as a process: the link it prints, how it stops, and what it says where it cannot serve."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests.desks import PATIENCE
from tests.runs import Script
from tests.said import Cli
from tests.sample_runs import failed_run

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def started(root: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A desk of its own process, and the link that it printed."""
    command = [sys.executable, "-P", "-m", "pipeline", "ui", "--no-open", "--store", f"files:{root}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.fullmatch(r"The desk of files:\S+: (http://\S+)\n", line)
            assert found, line
            yield process, found[1]
        finally:
            process.kill()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_link_leads_in_and_a_signal_stops_the_desk_at_once_and_no_run(root: Path, stop: signal.Signals) -> None:
    script = Script(root)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with started(root, "--port", "0") as (process, link):
        with browser.open(link) as page:
            assert page.url == link.partition("?")[0]
            assert script.id in page.read().decode()
        stream = browser.open(f"{page.url}api/v1/runs/{script.id}/events")
        process.send_signal(stop)
        assert process.wait(PATIENCE) == 0
        assert stream.read().endswith(b"\n\n")
        assert process.stderr is not None
        # It would say here that it cut a stream which did not end within a second.
        assert process.stderr.read() == ""
    script.begin("seed")
    assert script.end("completed")


def test_prefix_and_token_file_are_said_in_the_address(root: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t" * 30)
    arguments = ("--port", "0", "--root-path", "/desk", "--token-file", str(tmp_path / "token"))
    with started(root, *arguments) as (_, link):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/desk/", link)


def test_what_cannot_be_served_is_refused_before_anything_is(cli: Cli, root: Path) -> None:
    failed_run(root)
    for arguments, words in (
        (["--host", "0.0.0.0"], "needs --token-file"),
        (["--port", "70000"], "--port"),
        (["20260109"], "--export"),
        (["--export", str(root)], "RUN"),
        (["--export", str(root), "20260109"], "not empty"),
    ):
        said = cli("ui", "--no-open", *arguments)
        assert (said.code, words in said.err) == (2, True), said


def test_port_that_is_taken_is_named(root: Path, cli: Cli) -> None:
    with started(root, "--port", "0") as (_, link):
        port = link.split(":")[2].partition("/")[0]
        said = cli("ui", "--no-open", "--port", port)
    assert (said.code, f"port {port}" in said.err) == (2, True), said


def test_copy_of_a_run_is_written_and_named(cli: Cli, root: Path, tmp_path: Path) -> None:
    run = failed_run(root)
    said = cli("ui", "--export", str(tmp_path / "copy"), "latest")
    assert said.code == 0, said
    assert re.fullmatch(r"Wrote \d+ pages: \S+/copy/index\.html\n", said.out)
    assert (tmp_path / f"copy/runs/{run}.html").exists()


def test_without_its_packages_it_says_exactly_what_installs_them(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('starlette', 'uvicorn', 'jinja2'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "COVERAGE_PROCESS_START": "",
    }
    command = [sys.executable, "-m", "pipeline", "ui"]
    said = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert said.returncode == 2
    assert "Hint: ./pipeline.sh install ui\n" in said.stderr, said.stderr
