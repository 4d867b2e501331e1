"""The data of a course is what its published schemas say."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests import data_schemas
from tests.sites import SITES

CHECKERS = {name: jsonschema.Draft202012Validator(json.loads(text)) for name, text in data_schemas.schemas().items()}


def test_schemas_are_those_of_the_models_and_sound() -> None:
    there = {path.name: path.read_text(encoding="ascii") for path in data_schemas.FOLDER.iterdir()}
    assert there == data_schemas.schemas(), "run `python -m tests.data_schemas`"
    for checker in CHECKERS.values():
        jsonschema.Draft202012Validator.check_schema(checker.schema)


@pytest.mark.parametrize("name", SITES)
def test_each_file_names_its_schema_and_keeps_it(name: str) -> None:
    site = SITES[name]
    data = {path: json.loads(text) for path, text in site.items() if path.startswith("data/") and "schema/" not in path}
    assert data
    for path, value in data.items():
        schema = value["$schema"]
        assert site[f"data/{schema}"] == (data_schemas.FOLDER / schema.partition("/")[2]).read_bytes()
        problems = [f"{path}: {each.json_path}: {each.message}" for each in CHECKERS[schema[7:]].iter_errors(value)]
        assert problems == []


def test_value_that_no_field_has_is_found() -> None:
    path = next(path for path in SITES["model"] if path.startswith("data/01-"))
    value = json.loads(SITES["model"][path])
    value["lesson"]["cards"][0]["colour"] = "red"
    assert list(CHECKERS["lesson.json"].iter_errors(value))
