"""The address of a bucket: `s3://BUCKET/PREFIX` and the environment. Nothing of a credential is kept or shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pipeline.errors import ConfigError, SecretRefused
from pipeline.store.address import parse_store_url

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Variables that hold the endpoint, in the order in which the AWS tools look.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
#: A profile, and what takes its place where there is none.
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_ROLES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
#: What to type where the credential is in a file that is not read.
PROFILE_HINT = 'Of a profile in ~/.aws: eval "$(aws configure export-credentials --format env)"'


@dataclass(frozen=True, slots=True)
class Address:
    """Where the objects of a store are."""

    bucket: str
    #: All keys are below it; "" for the whole bucket.
    prefix: str
    #: Scheme, host and port of the server.
    endpoint: str
    region: str

    @property
    def url(self) -> str:
        """Return the URL as people write it."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def place(self) -> str:
        """Return the prefix and its server."""
        return f"{self.endpoint} {self.url}"

    @property
    def plain(self) -> bool:
        """Return whether the connection is not encrypted."""
        return self.endpoint.startswith("http:")


def parse_address(url: str, environ: Mapping[str, str] | None = None) -> Address:
    """Return the address that a URL and the environment name.

    Raises:
        ConfigError: The URL is none, or the endpoint is plain http on another machine without `?allow_http=1`.
            Or half a credential is set, or only a profile, which is not read.
        SecretRefused: It holds a user or a password.
    """
    environ = os.environ if environ is None else environ
    named = parse_store_url(url)
    _check_credential(environ)
    region = _first(environ, _REGIONS) or "us-east-1"
    endpoint = _endpoint(_first(environ, _ENDPOINTS), region, allow_http=named.allow_http)
    return Address(named.bucket, named.prefix, endpoint, region)


def names_credential(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a variable holds a credential, or says where there is one."""
    return bool(_first(os.environ if environ is None else environ, ("AWS_ACCESS_KEY_ID", *_ROLES)))


def _check_credential(environ: Mapping[str, str]) -> None:
    """Refuse half a credential, and a profile, which the client does not read."""
    halves = {name: environ.get(name, "").strip() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    if all(halves.values()):
        return
    if any(halves.values()):
        missing = next(name for name, value in halves.items() if not value)
        text = f"Half of a credential is set: {missing} is missing."
        raise ConfigError(text, code="credential_incomplete", hint=f"Set {missing}.")
    profile = _first(environ, _PROFILES)
    if profile and not _first(environ, _ROLES):
        raise ConfigError(
            f"AWS_PROFILE names {profile}, but profiles are not read: only the environment is, and a machine's role.",
            code="profile_not_read",
            hint=PROFILE_HINT,
        )


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")


def _endpoint(text: str, region: str, *, allow_http: bool) -> str:
    if not text:
        return f"https://s3.{region}.amazonaws.com"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "Write https://HOST or https://HOST:PORT."
        raise ConfigError("AWS_ENDPOINT_URL is no address of a server.", code="invalid_endpoint", hint=hint)
    if "@" in parts.netloc:
        raise SecretRefused("AWS_ENDPOINT_URL holds a user or a password.", hint="Set AWS_ACCESS_KEY_ID instead.")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
        raise ConfigError(
            f"AWS_ENDPOINT_URL is plain http at {parts.hostname}: what runs hold would cross the network unencrypted.",
            code="plain_http",
            hint="Use https, or add ?allow_http=1 to --store where the network is your own.",
        )
    return f"{parts.scheme}://{parts.netloc}"
