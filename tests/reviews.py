"""A course of two offline lessons that waits for its review, made once for a whole test process; and places in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from tests.said import Cli

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2", "--model", "offline", "--review")
#: What an edit puts in the place of a question's feedback.
NEW = "A person wrote this feedback by hand, and it says why."


@pytest.fixture(scope="session")
def drafted() -> list[Path]:
    """Where the course is kept, once it was made."""
    return []


@pytest.fixture
def run(cli: Cli, root: Path, out: Path, drafted: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The run of the course, in the test's own store."""
    if drafted:
        shutil.copytree(drafted[0], root)
    else:
        said = cli(*COURSE)
        assert said.code == 8
        assert "Waiting for review: 2 lessons." in said.err
        drafted.append(tmp_path_factory.mktemp("drafted") / "runs")
        shutil.copytree(root, drafted[0])
    return next(iter(FileStore(root, SystemClock()).heads())).run_id


def question_with_a_root(lesson: Any) -> str:
    """The address of a question whose answer is a surd."""
    return next(
        f"c{card}.q{number}"
        for card, each in enumerate(lesson["cards"], 1)
        for number, item in enumerate(each.get("items") or (), 1)
        if "sqrt" in str(item.get("answer"))
    )
