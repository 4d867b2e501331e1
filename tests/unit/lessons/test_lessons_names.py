"""Subjects and levels in every spelling."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.errors import CatalogueError
from pipeline.lessons.names import LEVELS, SUBJECTS, known_level, known_subject, level_name, shown, subject_name


@pytest.mark.parametrize("text", [name for canonical, others in SUBJECTS.items() for name in (canonical, *others)])
def test_subject_is_found_under_each_alias_whatever_the_case_and_separators(text: str) -> None:
    canonical = subject_name(text)
    assert canonical in SUBJECTS
    for spelling in (text.upper(), text.replace("_", "-"), text.replace("_", " "), f"  {text} "):
        assert subject_name(spelling) == canonical


@pytest.mark.parametrize("text", [name for canonical, others in LEVELS.items() for name in (canonical, *others)])
def test_level_is_found_under_each_alias_whatever_the_case_and_separators(text: str) -> None:
    canonical = level_name(text)
    assert canonical in LEVELS
    for spelling in (text.upper(), text.replace("_", "-"), text.replace("_", " "), text.replace("_", "")):
        assert level_name(spelling) == canonical


def test_subject_application_and_applications_of_mathematics_are_one() -> None:
    assert subject_name("application_of_mathematics") == subject_name("applications-of-mathematics")
    assert subject_name("aom") == subject_name("AoMs") == subject_name("app maths")
    assert shown(subject_name("aom")) == "Applications of Mathematics"


def test_subject_unknown_lists_all_and_names_the_nearest() -> None:
    with pytest.raises(CatalogueError, match=r"no subject 'phisics'\. Did you mean physics\?") as caught:
        subject_name("phisics")
    assert all(name in caught.value.hint for name in SUBJECTS)
    assert caught.value.exit_code == 2


def test_level_unknown_without_a_near_one_only_lists_all() -> None:
    with pytest.raises(CatalogueError, match=r"^There is no level 'zzz'\.$") as caught:
        level_name("zzz")
    assert all(name in caught.value.hint for name in LEVELS)


def test_subject_of_an_own_catalogue_is_known_where_it_is_given() -> None:
    assert subject_name("Latin", more=["latin"]) == "latin"
    with pytest.raises(CatalogueError):
        subject_name("latin")
    assert known_subject("latin") is None
    assert known_level("Nat 5") == "national_5"


def test_names_import_neither_yaml_nor_pydantic() -> None:
    heavy = {"yaml", "pydantic", "anthropic", "rich"}
    code = f"import sys, pipeline.lessons.names; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
