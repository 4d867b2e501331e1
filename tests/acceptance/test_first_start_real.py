"""The first start with real packages: both installers, from the pins, checked by hash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.fresh import copy_project


def start(root: Path, cwd: Path, path: str) -> subprocess.Popen[str]:
    """Start the copy from another folder, with the caller's own `pipeline` and `click` lying there."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return subprocess.Popen(
        [root / "pipeline.sh", "--help"],
        cwd=cwd,
        env={**env, "PATH": path, "PIPELINE_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "a fresh copy"
    copy_project(root)
    for name in ("pipeline.py", "click.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong module')\n", encoding="utf-8")
    return root


def path_without_uv() -> str:
    return os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "uv").exists()
    )


def skip_without_network(said: str) -> None:
    if "check the network" in said and not os.environ.get("CI"):
        pytest.skip("the package index cannot be reached")


def test_two_first_starts_with_pip_make_one_environment(root: Path, tmp_path: Path) -> None:
    both = [start(root, tmp_path, path_without_uv()) for _ in range(2)]
    results = [(process.communicate(), process.returncode) for process in both]

    said = "".join(err for (_, err), _ in results)
    skip_without_network(said)
    assert [code for _, code in results] == [0, 0], said
    assert all("Usage:" in out for (out, _), _ in results)
    assert said.count("First start") == 1
    assert (root / ".venv/.stamp").exists()
    assert sorted(path.name for path in root.glob(".venv*")) == [".venv"]


@pytest.fixture
def path_with_uv(tmp_path: Path) -> str:
    uv = Path(sys.executable).with_name("uv")
    found = str(uv) if uv.exists() else shutil.which("uv")
    if not found:
        assert not os.environ.get("CI"), "uv is one of the tests' pins"
        pytest.skip("uv is not installed")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/uv").symlink_to(found)
    return f"{tmp_path / 'tools'}{os.pathsep}{path_without_uv()}"


def test_first_start_with_uv_makes_an_environment(root: Path, tmp_path: Path, path_with_uv: str) -> None:
    process = start(root, tmp_path, path_with_uv)
    out, err = process.communicate()

    skip_without_network(err)
    assert process.returncode == 0, err
    assert "Usage:" in out
    config = (root / ".venv/pyvenv.cfg").read_text(encoding="utf-8")
    assert "uv = " in config, "uv was there, but was not used"


def test_extra_is_installed_and_kept_when_the_environment_is_made_again(
    root: Path, tmp_path: Path, path_with_uv: str
) -> None:
    env = {**os.environ, "PATH": path_with_uv, "PIPELINE_PYTHON": sys.executable}
    for arguments in (["install", "ui"], ["extras", "--json"]):
        done = subprocess.run(
            [root / "pipeline.sh", *arguments], cwd=tmp_path, env=env, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        # Then as after an upgrade.
        (root / ".venv/.stamp").write_text("1 0 0 3.11 -\n")
    assert "Installing what ui needs" in done.stderr
    assert '"uvicorn"],"missing":[]' in done.stdout
