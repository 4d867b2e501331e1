"""What s3://BUCKET/PREFIX and the environment say, and what is refused before any request."""

from __future__ import annotations

import pytest

from pipeline.errors import ConfigError, SecretRefused
from pipeline.store.objects import keys
from pipeline.store.objects.address import parse_address


def test_bucket_prefix_endpoint_and_region_are_found() -> None:
    env = {"AWS_ENDPOINT_URL": "https://objects.example:9000/", "AWS_DEFAULT_REGION": "eu-west-2"}
    address = parse_address("s3://courses/team/a", env)
    assert (address.bucket, address.prefix) == ("courses", "team/a")
    assert (address.endpoint, address.region) == ("https://objects.example:9000", "eu-west-2")
    assert (address.url, address.plain) == ("s3://courses/team/a", False)


def test_without_an_endpoint_it_is_the_cloud_of_that_region() -> None:
    address = parse_address("s3://courses", {"AWS_REGION": "eu-west-2"})
    assert (address.endpoint, address.url) == ("https://s3.eu-west-2.amazonaws.com", "s3://courses")


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "[::1]:9000"])
def test_plain_http_is_for_this_machine(host: str) -> None:
    assert parse_address("s3://courses", {"AWS_ENDPOINT_URL": f"http://{host}"}).plain


def test_plain_http_elsewhere_is_asked_for() -> None:
    env = {"AWS_ENDPOINT_URL": "http://objects.example"}
    with pytest.raises(ConfigError, match="unencrypted") as caught:
        parse_address("s3://courses", env)
    assert "allow_http=1" in caught.value.hint
    assert parse_address("s3://courses/a?allow_http=1", env).plain
    assert parse_address("s3://courses/a?allow_http=1", env).url == "s3://courses/a"


@pytest.mark.parametrize(
    ("url", "env"),
    [
        ("s3://key:verysecret@courses/a", {}),
        ("s3://courses/a", {"AWS_ENDPOINT_URL": "https://key:verysecret@objects.example"}),
    ],
)
def test_secrets_in_addresses_are_refused_and_not_shown(url: str, env: dict[str, str]) -> None:
    with pytest.raises(SecretRefused) as caught:
        parse_address(url, env)
    assert "verysecret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///a",
        "s3://A_B/x",
        "s3://courses/a/../b",
        "s3://courses/a?retries=3",
        "s3://courses/ü",
        "s3://ab/%41",
    ],
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(url, {})
    assert caught.value.code in ("store_url_invalid", "unknown_store_setting")


@pytest.mark.parametrize("text", ["ftp://objects.example", "objects.example", "https://"])
def test_endpoint_that_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="AWS_ENDPOINT_URL"):
        parse_address("s3://courses", {"AWS_ENDPOINT_URL": text})


def test_paths_of_sub_journals_come_back_from_their_keys() -> None:
    for path in ("fan#1/left#2", "a~b=c%d", "ü ß", "late-3"):
        key = keys.journal(f"20260109_143022/{path}", 1)
        assert keys.part_path(key) == path
        assert not set(key) & set('%~#[]{}^\\ <>|?*`"')


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_profile_is_not_read_and_the_command_that_exports_it_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match="team, but profiles are not read") as caught:
        parse_address("s3://courses", {name: "team"})
    assert caught.value.hint.endswith('eval "$(aws configure export-credentials --format env)"')
    key = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert parse_address("s3://courses", {name: "team", **key}).bucket == "courses"
    assert parse_address("s3://courses", {name: "team", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}).bucket == "courses"


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_of_a_credential_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is missing") as caught:
        parse_address("s3://courses", {name: "a-secret-of-nobody"})
    assert "a-secret-of-nobody" not in f"{caught.value} {caught.value.hint}"
