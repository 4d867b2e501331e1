"""A course kept in a bucket, through the real program: copied home, checked; what its commands say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.store.objects.backend import open_objects
from tests.acceptance.killing import Starter, course
from tests.said import Cli
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.real_objects import Rclone
from tests.servers.real_objects import rclone as rclone


def test_course_in_a_bucket_is_copied_home(
    starter: Starter, moto: Moto, objects: str, tmp_path: Path, cli: Cli
) -> None:
    first = f"s3://{moto.bucket()}/runs"
    with course(tmp_path / "c", starter, url=first, env=environ(moto.endpoint)) as made:
        made.new()
        assert starter.wait() == 0, made.log()
    said = cli("list", "--store", first)
    assert (said.code, "completed" in said.out) == (0, True)
    assert cli("store", "check", "--store", first).out == "No damage found.\n"
    said = cli("store", "copy", first, f"files:{tmp_path / 'home'}")
    assert (said.code, said.out.splitlines()[-1].startswith("1 run copied, ")) == (0, True)
    home_url = f"files:{tmp_path / 'home'}"
    assert cli("cost", "--json", "--store", first).out == cli("cost", "--json", "--store", home_url).out


def test_store_commands_say_what_is_there_and_what_is_wrong(objects: str, tmp_path: Path, cli: Cli) -> None:
    cli("lessons", "--subject", "maths", "--level", "n5", "--model", "offline", "--lessons", "1", "--until", "seed",
        "--store", objects, "--out", str(tmp_path / "out"))  # fmt: skip
    (row,) = cli("store", "info", "--json", "--store", objects).json()
    assert (row["store"], row["runs"], row["statuses"]) == (objects, 1, {"stopped_as_asked": 1})
    assert f"Store:   {objects}" in cli("store", "info", "--store", objects).out
    bucket = open_objects(objects).bucket
    (blob, *_) = [entry.key for entry in bucket.under(f"runs/{row['newest']}/b")]
    bucket.put(blob, b"junk")
    said = cli("store", "check", "--store", objects)
    assert (said.code, "is damaged; a record refers to it" in said.out) == (3, True)
    assert "1 fault in 1 run" in said.err
    (problem,) = cli("store", "check", "latest", "--json", "--store", objects).json()
    assert (problem["run"], problem["serious"]) == (row["newest"], True)
    said = cli("store", "copy", objects, f"files:{tmp_path / 'home'}", "--json")
    assert (said.code, said.json()[0]["problem"].split(":")[0]) == (3, "These values are damaged and were left out")
    assert cli("store", "copy", objects, objects).code == 3


def test_server_that_cannot_be_used_is_said_without_secrets(
    objects: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody, team = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, {"AWS_PROFILE": "team"}
    for url, variables, code, hint in (
        ("s3://courses/x", {"AWS_ENDPOINT_URL": "http://objects.example"}, 2, "Use https"),
        ("s3://key:a-secret-of-nobody@courses/x", {"AWS_ENDPOINT_URL": "https://objects.example"}, 2, "Set AWS_"),
        ("s3://courses/x", {"AWS_ACCESS_KEY_ID": "", **team}, 2, "Set AWS_ACCESS_KEY_ID"),
        ("s3://courses/x", {**nobody, **team}, 2, "eval "),
        ("s3://courses/x", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, 3, "the server at http://127.0.0.1:9 runs"),
        ("s3://no-such-bucket/x", {}, 3, "Create it"),
    ):
        with monkeypatch.context() as patch:
            for name, value in {"AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody", **variables}.items():
                patch.setenv(name, value)
            for command in (["store", "info"], ["list"], ["cost"], ["status", "latest"]):
                said = cli(*command, "--store", url)
                assert said.code == code, said.err
                assert [row.split(":")[0] for row in said.err.splitlines()] == ["Error", "Hint"]
                assert hint in said.err
                assert "a-secret-of-nobody" not in said.out + said.err


def test_course_is_not_begun_on_a_server_that_ignores_conditional_puts(
    rclone: Rclone, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in environ(rclone.endpoint).items():
        monkeypatch.setenv(name, value)
    argv = ["lessons", "--subject", "maths", "--level", "n5", "--model", "offline", "--out", str(tmp_path / "out")]
    said = cli(*argv, "--store", f"s3://{rclone.bucket()}/runs")
    assert said.code == 3
    assert "it ignores conditional puts" in said.err
    assert "not `rclone serve s3`" in said.err
    assert not (tmp_path / "out").exists()
