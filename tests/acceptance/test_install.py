"""`./pipeline.sh install EXTRA`: from a hashed lock, and remembered when the environment is made again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.fresh import ROOT, Copy, fake_copy

LOCKS = Path("devops/requirements")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """A copy that was started before, with the locks of two extras."""
    copy = fake_copy(tmp_path)
    for name in ("ui.txt", "plot.txt"):
        shutil.copy2(ROOT / LOCKS / name, copy.root / LOCKS / name)
    assert copy.start().returncode == 0
    copy.asked()
    return copy


def installed(copy: Copy) -> list[str]:
    """The lock files that were installed since the last look, in order."""
    return [line.rpartition("/")[2] for line in copy.asked("-m pip install")]


def add_comment(copy: Copy, lock: str) -> None:
    with (copy.root / LOCKS / lock).open("a", encoding="utf-8") as file:
        file.write("# another release\n")


def test_extra_is_installed_from_its_hashed_lock_once(copy: Copy) -> None:
    result = copy.start("install", "ui")

    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.splitlines() == ["Installing what ui needs ...", "Installed: ui."]
    [line] = copy.asked("-m pip install")
    assert "--require-hashes" in line
    assert line.endswith("devops/requirements/ui.txt")
    assert copy.start("list").returncode == 0
    assert installed(copy) == []


def test_environment_that_is_made_again_has_the_extras_too(copy: Copy) -> None:
    for name in ("ui", "plot", "ui"):
        assert copy.start("install", name).returncode == 0
    copy.asked()
    add_comment(copy, "core.txt")

    assert copy.start("list").returncode == 0

    assert installed(copy) == ["core.txt", "ui.txt", "plot.txt"]
    assert copy.start("list").returncode == 0
    assert installed(copy) == []


def test_new_pins_of_an_extra_are_installed_by_the_next_start(copy: Copy) -> None:
    assert copy.start("install", "ui", "plot").returncode == 0
    copy.asked()
    add_comment(copy, "plot.txt")

    assert copy.start("list").returncode == 0
    assert installed(copy) == ["ui.txt", "plot.txt"]
    (copy.root / LOCKS / "plot.txt").unlink()
    assert copy.start("list").returncode == 0, "an extra that is no more hinders nobody"


def test_first_start_can_be_an_install(tmp_path: Path) -> None:
    copy = fake_copy(tmp_path)
    shutil.copy2(ROOT / LOCKS / "ui.txt", copy.root / LOCKS / "ui.txt")
    assert copy.start("install", "ui", POSIXLY_CORRECT="1").returncode == 0
    assert installed(copy) == ["core.txt", "ui.txt"]


def test_what_is_no_extra_is_refused_with_those_there_are(copy: Copy) -> None:
    for words in (["nothing"], ["core"], ["ui", "../x"], ["*"], []):
        result = copy.start("install", *words)
        assert (result.returncode, result.stdout) == (2, "")
        assert "There are: plot ui." in result.stderr
    assert installed(copy) == []


def test_failed_install_is_not_remembered_and_says_why(copy: Copy) -> None:
    result = copy.start("install", "ui", FAKE_FAIL="Could not resolve host: example")
    assert result.returncode == 2
    assert "check the network" in result.stderr
    copy.asked()
    assert copy.start("list").returncode == 0
    assert installed(copy) == []


def test_packages_of_the_user_are_named_before_they_go(copy: Copy) -> None:
    site = copy.venv / "lib" / "python3.11" / "site-packages"
    for name in ("PyYAML-6.0.2", "My_Helper-1.4", "pip-24.0", "other.thing-2.0"):
        (site / f"{name}.dist-info").mkdir()
    add_comment(copy, "core.txt")
    said = copy.start("list").stderr
    assert "not carried over: My-Helper==1.4 other-thing==2.0. To add them again: " in said
    assert said.index("not carried over") < said.index("pip install My-Helper==1.4")
    add_comment(copy, "core.txt")
    assert "not carried over" not in copy.start("list").stderr


def test_extra_may_be_named_as_what_it_is_for(copy: Copy) -> None:
    shutil.copy2(copy.root / LOCKS / "ui.txt", copy.root / LOCKS / "postgres.txt")
    assert copy.start("install", "sql").stderr.splitlines()[-1] == "Installed: postgres."
