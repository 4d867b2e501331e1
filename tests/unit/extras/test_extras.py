"""What is told to install is what the project declares, and what its tests run on."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

from pipeline.extras import EXTRAS, how_to_install

ROOT = Path(__file__).parents[3]


def test_extras_are_those_that_the_project_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: list(wanted) for name, wanted in EXTRAS.items()} == declared


def test_command_to_install_an_extra_is_for_this_python_and_can_be_pasted() -> None:
    words = shlex.split(how_to_install("sql"))
    assert sys.executable in words
    assert words[-3:] == ["alembic>=1.18,<2", "psycopg[binary]>=3.3,<4", "sqlalchemy>=2.1,<2.2"]
