"""URLs of stores: what they name, what is refused before any request, and that no secret is ever repeated."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pipeline.engine.remote.coordinator import check_store
from pipeline.errors import ConfigError, SecretRefused
from pipeline.store.account import FileAccount
from pipeline.store.address import has_password, parse_store_url, store_words
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.objects import keys
from pipeline.store.objects.address import names_credential, parse_address, refusal
from pipeline.store.sql import postgres
from pipeline.store.url import open_account, open_store

SERVER = "postgresql://postgres@127.0.0.1:5432/postgres"
KEY = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody"}


def test_folder_of_the_caller_and_memory_are_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("files:runs")
    assert isinstance(store, FileStore)
    assert store.root == tmp_path / "runs"
    assert isinstance(open_account("files:runs"), FileAccount)
    assert isinstance(open_store("memory:"), MemoryStore)
    assert isinstance(open_account("memory:"), MemoryAccount)
    assert list(tmp_path.iterdir()) == []


def test_question_mark_in_the_name_of_a_folder_that_is_there_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "what?").mkdir()
    assert open_store(f"files:{tmp_path}/what?").url == f"files:{tmp_path}/what?"


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("file:home", "files:home"),
        ("./home", "files:./home"),
        ("courses.db", "sqlite:courses.db"),
        ("sqlite3:courses.db", "sqlite:courses.db"),
        ("postgres:db.example.org/courses", "postgresql://db.example.org/courses"),
        ("s3:/courses/team", "s3://courses/team"),
    ],
)
def test_url_that_names_no_store_is_told_what_it_is_near_to(url: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.hint.startswith(f"Did you mean {near}? Stores are ")


@pytest.mark.parametrize(
    ("url", "code", "hint"),
    [
        ("sqlite:courses.db?x=1", "unknown_store_setting", "without what follows the question mark"),
        ("files:home?x=1&y", "unknown_store_setting", "Write files:NAME"),
        ("memory:?x=1", "unknown_store_setting", "Write memory:NAME"),
        ("s3://courses/team?alow_http=1", "unknown_store_setting", "Did you mean allow_http?"),
        ("postgresql://host/runs?unsave=1", "unknown_store_setting", "Did you mean unsafe?"),
        ("postgresql://host/runs?unsafe=yes", "store_setting_invalid", "Write ?unsafe=1."),
        ("sqlite:///srv/courses.db", "store_url_invalid", "Write sqlite:/srv/courses.db (or"),
        ("sqlite:a\udcff.db", "store_url_invalid", ""),
        *((url, "store_url_invalid", "") for url in ("s3://", "s3:///a", "s3://A_B/x", "s3://courses/a/../b")),
        *((url, "store_url_invalid", "") for url in ("s3://courses/ü", "s3://ab/%41", "", "files:", "runs")),
    ],
)
def test_url_that_cannot_be_taken_is_refused_with_what_to_write(url: str, code: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == code
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "s3://me:TOPSECRET@host/x",
        "postgres:me:TOPSECRET@host/x",
        "files://me:TOPSECRET@host/x",
        "files://TOPSECRET@host",
        "memory://me:TOPSECRET@host",
        "postgresql://me:12/TOPSECRET@host/runs",
        "postgresql://me:12/TOPSECRET@host",
        "postgresql://me:12?TOPSECRET@host/runs",
        "postgresql://me:12#TOPSECRET@host/runs",
        "postgresql://me@host/runs?password;TOPSECRET",
        "postgresql://me@host/runs?TOPSECRET@host/runs",
        "s3://runs/x?key:TOPSECRET",
        "host=db password=TOPSECRET user=x",
        "host=db password='a TOPSECRET' dbname=x",
        "password=TOPSECRET",
        "Server=db;PWD=TOPSECRET;",
        "admin:TOPSECRET",
        "postgresql:me:TOPSECRET",
        "mysql://me:TOPSECRET@host/db",
        "sqlite://me:TOPSECRET@host/db",
        "postgresql+psycopg://me:TOPSECRET@host/db",
        "postgresql://me:TOPSECRET@host/a\udcff",
        "postgresql://me@host/runs?options=-cpassword%3DTOPSECRET",
        "postgresql://me@host/runs?options=-c%20password%3DTOPSECRET",
        "postgresql://me@host/runs?application_name=x%2520password%253DTOPSECRET",
        "postgresql://me@host/runs%20password%3DTOPSECRET",
        "postgresql://me%20password%3DTOPSECRET@host/runs",
        *(
            f"postgresql://me@host/runs?{first}{name}=TOPSECRET"
            for first in ("", "sslmode=prefer&")
            for name in ("sslpassword", "Password", "passwd", "pwd", "oauth_client_secret", "x", "Host", "nonsense")
        ),
    ],
)
def test_url_that_is_refused_is_not_repeated_where_it_may_hold_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "TOPSECRET" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:TOPSECRET@[::1/runs",
        "postgresql://me:TOPSECRET@host:0/runs",
        "postgresql://me:TOPSECRET@host:99999/runs",
        "postgresql://me:TOPSECRET@a\u202eb/runs",
        f"postgresql://me:TOPSECRET@{'a' * 300}/runs",
        f"postgresql:///runs?host={'a' * 300}",
    ],
)
def test_url_of_a_host_that_cannot_be_is_refused_wherever_it_is_looked_at(url: str) -> None:
    for look in (open_store, store_words, has_password, partial(check_store, near=False)):
        with pytest.raises(ConfigError) as caught:
            look(url)
        assert caught.value.code == "store_url_invalid"
        assert "TOPSECRET" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:secret@host:5432/runs?unsafe=1", " --store 'postgresql://me@host:5432/runs?unsafe=1'"),
        ("postgres://me:secret@host/runs", " --store postgresql://me@host/runs"),
        ("sqlite:my runs@home.db", " --store 'sqlite:/tmp/my runs@home.db'"),
        ("files:../a;b", " --store 'files:/a;b'"),
        ("memory:", " --store memory:"),
    ],
)
def test_store_in_a_printed_command_is_quoted_and_whole_and_has_no_password(
    url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/tmp")
    assert store_words(url) == words


@pytest.mark.parametrize("password", ["p@TOPSECRET", "p%40TOPSECRET", "@TOPSECRET", "p@x@TOPSECRET"])
def test_at_sign_within_a_password_makes_no_part_of_it_a_host(password: str) -> None:
    address = parse_store_url(f"postgresql://me:{password}@host/runs")
    parts = urlsplit(address.dsn)
    assert (address.url, parts.hostname) == ("postgresql://me@host/runs", "host")
    assert address.dsn.count("@") == 1
    assert unquote(parts.password or "") == unquote(password)


@pytest.mark.parametrize(
    ("query", "single", "unsafe"),
    [
        ("?single=0", False, False),
        ("?unsafe=1&single=1", True, True),
        ("?sslmode=verify-full&passfile=/x&options=-c%20statement_timeout%3D9s&single=1", True, False),
    ],
)
def test_settings_of_ours_are_not_the_drivers(query: str, single: bool, unsafe: bool) -> None:
    address = parse_store_url(SERVER + query)
    assert (address.single, address.unsafe, address.url) == (single, unsafe, SERVER + query)
    assert "single" not in address.dsn
    assert "unsafe" not in address.dsn


# --- buckets --------------------------------------------------------------------------------------


def test_bucket_prefix_endpoint_and_region_are_found() -> None:
    env = {"AWS_ENDPOINT_URL": "https://objects.example:9000/", "AWS_DEFAULT_REGION": "eu-west-2"}
    address = parse_address("s3://courses/team/a", env)
    assert (address.bucket, address.prefix) == ("courses", "team/a")
    assert (address.endpoint, address.region) == ("https://objects.example:9000", "eu-west-2")
    assert (address.url, address.plain) == ("s3://courses/team/a", False)
    address = parse_address("s3://courses", {"AWS_REGION": "eu-west-2"})
    assert (address.endpoint, address.url) == ("https://s3.eu-west-2.amazonaws.com", "s3://courses")


def test_plain_http_is_for_this_machine_and_asked_for_elsewhere() -> None:
    for host in ("127.0.0.1:9000", "localhost", "[::1]:9000"):
        assert parse_address("s3://courses", {"AWS_ENDPOINT_URL": f"http://{host}"}).plain
    env = {"AWS_ENDPOINT_URL": "http://objects.example"}
    with pytest.raises(ConfigError) as caught:
        parse_address("s3://courses", env)
    assert caught.value.code == "plain_http"
    address = parse_address("s3://courses/a?allow_http=1", env)
    assert (address.plain, address.url) == (True, "s3://courses/a")


def test_secret_in_the_endpoint_is_refused_and_not_shown() -> None:
    with pytest.raises(SecretRefused) as caught:
        parse_address("s3://courses/a", {"AWS_ENDPOINT_URL": "https://key:verysecret@objects.example"})
    assert "verysecret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("env", "code"),
    [
        *(({"AWS_ENDPOINT_URL": url}, "invalid_endpoint") for url in ("ftp://h", "objects.example", "https://")),
        *(({name: "a-secret-of-nobody"}, "credential_incomplete") for name in KEY),
        *(({name: "team"}, "profile_not_read") for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")),
    ],
)
def test_environment_that_leads_to_no_bucket_is_refused(env: dict[str, str], code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address("s3://courses", env)
    assert caught.value.code == code
    assert "a-secret-of-nobody" not in f"{caught.value} {caught.value.hint}"
    if code == "profile_not_read":
        assert caught.value.hint.endswith('eval "$(aws configure export-credentials --format env)"')
        for more in (KEY, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}):
            assert parse_address("s3://courses", {**env, **more}).bucket == "courses"


def test_credential_is_named_by_a_key_or_a_role() -> None:
    assert not names_credential({"AWS_REGION": "eu-west-2", "AWS_ACCESS_KEY_ID": " "})
    assert names_credential({"AWS_ACCESS_KEY_ID": "key"})
    assert names_credential({"AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"})


def test_paths_of_sub_journals_come_back_from_their_keys() -> None:
    for path in ("fan#1/left#2", "a~b=c%d", "ü ß", "late-3"):
        key = keys.journal(f"20260109_143022/{path}", 1)
        assert keys.part_path(key) == path
        assert not set(key) & set('%~#[]{}^\\ <>|?*`"')


ADDRESS = parse_address("s3://courses/team", {"AWS_REGION": "us-east-1"})


def told(status: int, code: str, more: str = "") -> str:
    """As the client words it."""
    body = f"<Error><Code>{code}</Code><Message>a-secret-of-nobody</Message>{more}</Error>" if code else ""
    return f"Error performing GET https://x/a-secret-of-nobody - non-2xx status code: {status} X: {body}"


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (told(400, "ExpiredToken"), "credential_expired", "AWS_SESSION_TOKEN"),
        (told(403, "AccessDenied"), "access_denied", "below s3://courses/team"),
        (told(403, "SignatureDoesNotMatch"), "credential_refused", "AWS_SECRET_ACCESS_KEY"),
        (told(400, "InvalidToken"), "credential_refused", "AWS_SESSION_TOKEN"),
        (told(401, ""), "credential_refused", "AWS_ACCESS_KEY_ID"),
        (told(403, "RequestTimeTooSkewed"), "clock_skew", "clock"),
        (told(404, "NoSuchBucket"), "bucket_missing", "Create it"),
        (told(301, "PermanentRedirect"), "wrong_region", "AWS_REGION"),
        (told(400, "AuthorizationHeaderMalformed", "<Region>eu-west-2</Region>"), "wrong_region", "=eu-west-2"),
        (told(400, "AuthorizationHeaderMalformed", "wrong; expecting 'eu-west-2'"), "wrong_region", "=eu-west-2"),
        ("Received redirect without LOCATION, … an incorrectly configured region", "wrong_region", "AWS_REGION"),
        ("PUT http://169.254.169.254/latest/api/token - status code: 403", "no_credential", "export-credentials"),
        (told(501, "NotImplemented"), "unsupported_server", "conditional puts"),
        (told(400, "KeyTooLongError"), "server_error", "Check that the server"),
    ],
)
def test_refusal_of_a_bucket_that_stays_has_a_code_and_a_hint(text: str, code: str, hint: str) -> None:
    found = refusal(text, ADDRESS)
    assert (found.code, found.passing) == (code, False)
    assert hint in found.hint
    assert "a-secret-of-nobody" not in f"{found}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *((told(status, "X"), "server_error") for status in (503, 500, 409, 429)),
        ("HTTP error: operation timed out", "server_silent"),
        ("HTTP error: error sending request: Connection refused", "server_unreachable"),
    ],
)
def test_refusal_of_a_bucket_that_may_pass_is_known(text: str, code: str) -> None:
    assert (refusal(text, ADDRESS).code, refusal(text, ADDRESS).passing) == (code, True)


def test_refusal_where_no_variable_holds_a_credential_says_so() -> None:
    for status, code in ((403, "AccessDenied"), (403, ""), (401, ""), (403, "InvalidAccessKeyId")):
        found = refusal(told(status, code), ADDRESS, named=False)
        assert found.code == "no_credential"
        assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in found.hint
    assert refusal(told(404, "NoSuchBucket"), ADDRESS, named=False).code == "bucket_missing"


# --- servers that let one client in ---------------------------------------------------------------


def test_server_that_has_not_noticed_that_its_client_died_is_asked_again_and_a_closed_port_once() -> None:
    answers: list[object] = [
        ConnectionError("server closed the connection unexpectedly"),
        ConnectionError("busy"),
        "in",
    ]

    def connect() -> object:
        answer = answers.pop(0)
        if isinstance(answer, ConnectionError):
            raise answer
        return answer

    assert postgres.connected(connect, (ConnectionError,)) == "in"
    answers += [ConnectionError("connection failed: Connection refused"), "never asked"]
    with pytest.raises(ConnectionError):
        postgres.connected(connect, (ConnectionError,))
    assert answers == ["never asked"]


@pytest.mark.parametrize(
    ("words", "single", "hint"),
    [
        ("connection failed: server closed the connection unexpectedly", False, "add ?single=1"),
        ("connection timeout expired", False, "add ?single=1"),
        ("connection failed: server closed the connection unexpectedly", True, "it serves one at a time"),
        ("connection failed: Connection refused", True, "Check that the server runs"),
        ("no answer came", False, "Check that the server runs"),
    ],
)
def test_what_to_do_depends_on_what_the_server_did(words: str, single: bool, hint: str) -> None:
    assert hint in postgres.refusal("", words, parse_store_url(SERVER + "?single=1" * single)).hint
