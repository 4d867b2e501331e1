"""The wheel: built, installed into an environment of its own in another folder, and used there."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline import __version__
from tests.acceptance.fresh import ROOT, copy_project

Home = tuple[Path, Path]


def run(*words: object, cwd: Path, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIPELINE_", "PYTHON"))}
    return subprocess.run(
        list(map(str, words)), cwd=cwd, env={**kept, **variables}, capture_output=True, text=True, check=check
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An environment with the wheel alone, and a folder to work in."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    copy_project(source)
    for name in ("pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "build", "--quiet", "--python", sys.executable, "--out-dir", folder / "dist", cwd=source)
    run(*uv, "venv", "--quiet", "--python", sys.executable, folder / "env", cwd=folder)
    [wheel] = (folder / "dist").glob("*.whl")
    lock = ROOT / "devops" / "requirements" / "core.txt"
    install = [*uv, "pip", "install", "--quiet", "--python", folder / "env"]
    run(*install, "--require-hashes", "--no-deps", "-r", lock, cwd=folder)
    run(*install, "--no-deps", wheel, cwd=folder)
    (folder / "work").mkdir()
    return folder / "env" / "bin" / "course-pipeline", folder / "work"


def test_course_is_made_away_from_any_checkout(home: Home) -> None:
    program, work = home
    assert run(program, "--version", cwd=work).stdout.startswith(f"course-pipeline {__version__} ")
    course = ("lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "1", "--yes")
    said = run(program, *course, cwd=work)
    assert f"Runs are kept in {work / 'course-runs'}" in said.stdout
    assert (work / "course-runs" / "published" / "course_c84775-draft" / "index.html").is_file()
    assert run(program, "lessons", "--resume", "latest", cwd=work).returncode == 0
    elsewhere = run(program, *course, cwd=work, PIPELINE_HOME="elsewhere")
    assert (work / "elsewhere" / "published").is_dir(), elsewhere.stdout


def test_commands_are_named_as_they_are_typed_there(home: Home) -> None:
    program, work = home
    for words in (["--help"], ["lessons", "--help"], ["draw", "--help"], ["help", "draw"], ["ui"], ["extras"]):
        said = run(program, *words, cwd=work, check=False)
        assert "pipeline.sh" not in said.stdout + said.stderr, words
    assert "pip install 'course-pipeline[ui]'" in run(program, "ui", cwd=work, check=False).stderr
    assert "pip install 'course-pipeline[export]'" in run(program, "extras", "--json", cwd=work).stdout
    course = ("lessons", "--subject", "physics", "--level", "higher", "--until", "seed", "--yes", "--json")
    assert '"course-pipeline lessons --resume ' in run(program, *course, cwd=work).stdout


def test_archives_hold_all_that_belongs_to_the_package(home: Home) -> None:
    program, _ = home
    dist = program.parents[2] / "dist"
    [wheel], [source] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    listed = subprocess.run(
        ["git", "ls-files", "pipeline"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    assert set(listed) - inside == set()
    assert {name for name in inside if not name.startswith("pipeline/")} == {
        name for name in inside if ".dist-info/" in name
    }
    with tarfile.open(source) as archive:
        assert any(name.endswith("pipeline/py.typed") for name in archive.getnames())


def test_windows_is_told_of_wsl() -> None:
    code = "import sys; sys.platform = 'win32'; import pipeline"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "inside WSL" in said.stderr.splitlines()[-1]
