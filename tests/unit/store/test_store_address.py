"""URLs of stores that cannot be taken, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.store.url import open_store


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("file:home", "files:home"),
        ("./home", "files:./home"),
        ("/srv/runs", "files:/srv/runs"),
        ("courses.db", "sqlite:courses.db"),
        ("sqlite3:courses.db", "sqlite:courses.db"),
        ("postgres:db.example.org/courses", "postgresql://db.example.org/courses"),
        ("S3:courses/team", "s3://courses/team"),
        ("s3:/courses/team", "s3://courses/team"),
    ],
)
def test_url_that_names_no_store_is_told_what_it_is_near_to(url: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.hint.startswith(f"Did you mean {near}? Stores are ")


@pytest.mark.parametrize(
    ("url", "said", "hint"),
    [
        ("sqlite:courses.db?x=1", "--store sqlite:… has no setting 'x'.", "without what follows the question mark"),
        ("files:home?x=1&y", "--store files:… has no setting 'x', 'y'.", "Write files:NAME"),
        ("memory:?x=1", "--store memory:… has no setting 'x'.", "Write memory:NAME"),
        ("s3://courses/team?alow_http=1", "--store s3://… has no setting 'alow_http'.", "Did you mean allow_http?"),
        ("postgresql://host/runs?unsave=1", "--store postgresql://… has no setting 'unsave'.", "Did you mean unsafe?"),
        ("postgresql://host/runs?unsafe=yes", "--store postgresql://… sets unsafe to neither", "Write ?unsafe=1."),
        ("sqlite:///srv/courses.db", "names no file", "Write sqlite:/srv/courses.db (or"),
    ],
)
def test_settings_that_nobody_reads_are_refused_by_name(url: str, said: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_question_mark_in_the_name_of_a_folder_that_is_there_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "what?").mkdir()
    assert open_store(f"files:{tmp_path}/what?").url == f"files:{tmp_path}/what?"
