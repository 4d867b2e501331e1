"""From a URL to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pipeline.engine.remote.coordinator import check_store
from pipeline.errors import ConfigError
from pipeline.store.account import FileAccount
from pipeline.store.address import has_password, parse_store_url, store_words
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.url import open_account, open_store


def test_folder_of_the_caller_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("files:runs")
    assert isinstance(store, FileStore)
    assert store.root == tmp_path / "runs"
    assert isinstance(open_account("files:runs"), FileAccount)
    assert list(tmp_path.iterdir()) == []


def test_memory_is_a_store() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert isinstance(open_account("memory:"), MemoryAccount)


@pytest.mark.parametrize(
    "url", [
        "", "files:", "runs", "s3://me:secret@host/x", "postgres:me:secret@host/x", "files://me:secret@host/x",
        "files://secret@host", "memory://me:secret@host",
    ],
)  # fmt: skip
def test_other_urls_are_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "secret" not in caught.value.message


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


@pytest.mark.parametrize(
    "setting",
    [
        "sslpassword",
        "password",
        "Password",
        "PASSWORD",
        "passwd",
        "pwd",
        "oauth_client_secret",
        "x",
        "Host",
        "nonsense",
    ],
)
def test_setting_of_a_database_that_is_not_known_is_refused_without_its_value(setting: str) -> None:
    for name in (setting, f"sslmode=prefer&{setting}"):
        with pytest.raises(ConfigError) as caught:
            open_store(f"postgresql://me@host/runs?{name}=TOPSECRET")
        assert "TOPSECRET" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
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
        "postgresql://me@host/runs?options=-cpassword%3DTOPSECRET",
        "postgresql://me@host/runs?options=-c%20password%3DTOPSECRET",
        "postgresql://me@host/runs?application_name=x%2520password%253DTOPSECRET",
        "postgresql://me@host/runs%20password%3DTOPSECRET",
        "postgresql://me%20password%3DTOPSECRET@host/runs",
    ],
)
def test_password_in_a_place_of_its_own_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "TOPSECRET" not in caught.value.message + caught.value.hint


def test_settings_of_a_database_that_hold_no_secret_are_taken() -> None:
    url = "postgresql://me@host/runs?sslmode=verify-full&passfile=/x&options=-c%20statement_timeout%3D9s&single=1"
    assert open_store(url).url == url


@pytest.mark.parametrize("password", ["p@TOPSECRET", "p%40TOPSECRET", "@TOPSECRET", "p@x@TOPSECRET"])
def test_at_sign_within_a_password_makes_no_part_of_it_a_host(password: str) -> None:
    address = parse_store_url(f"postgresql://me:{password}@host/runs")
    parts = urlsplit(address.dsn)
    assert (address.url, parts.hostname) == ("postgresql://me@host/runs", "host")
    assert address.dsn.count("@") == 1
    assert unquote(parts.password or "") == unquote(password)


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
    for look in (open_store, store_words, has_password):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            look(url)
        assert "TOPSECRET" not in caught.value.message + caught.value.hint
    check_store(url, near=False)


@pytest.mark.parametrize("url", ["sqlite:a\udcff.db", "postgresql://me:TOPSECRET@host/a\udcff"])
def test_name_of_a_database_that_is_no_text_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--store is not valid UTF-8") as caught:
        open_store(url)
    assert "TOPSECRET" not in caught.value.message + caught.value.hint
