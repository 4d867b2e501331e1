"""The address of a bucket, `s3://BUCKET/PREFIX` and the environment; and what its server's refusals mean for people.

Nothing of a credential is kept or shown. The text of a refusal holds addresses and tokens: little of it is passed on.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
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
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def place(self) -> str:
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


_STATUS = re.compile(r"status code: (\d+)")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_REGION = re.compile(r"<Region>([a-z0-9-]{2,40})</Region>|expecting '([a-z0-9-]{2,40})'")
#: Where a machine of a cloud asks for its role: nothing else held a credential.
_ROLE_SERVER = re.compile(r"169\.254\.|latest/api/token|credentials? provider", re.IGNORECASE)
#: A key that the client cannot tell: an empty frame, `..`, a control character.
_FOREIGN = re.compile(r'[Pp]ath "([^"\n]{1,2000})"[^\n]*(?:empty path segment|illegal character)', re.DOTALL)
_NO_CREDENTIAL = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or AWS_WEB_IDENTITY_TOKEN_FILE; "
    f"a container's or machine's role is found by itself. {PROFILE_HINT}"
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_ELSEWHERE = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect"})
_DENIED = frozenset({"AccessDenied", "AllAccessDisabled", "AccountProblem"})


class Refusal(NamedTuple):
    """The reason for which a request failed, and what to do about it."""

    #: Of the error: foreign_object, no_credential, bucket_missing, wrong_region, credential_expired, clock_skew,
    #: access_denied, credential_refused, unsupported_server, server_error, server_silent or server_unreachable.
    code: str
    #: A clause, for the end of a sentence.
    why: str
    hint: str
    #: The same request may succeed in a moment.
    passing: bool = False


def refusal(text: str, address: Address, *, named: bool = True) -> Refusal:
    """Return what the error of a client means.

    Args:
        named: A variable of the environment names a credential, or where there is one.
    """
    status, code = _found(_STATUS, text), _found(_CODE, text)
    if foreign := _found(_FOREIGN, text):
        hint = f"Remove it: aws s3api delete-object --bucket {address.bucket} --key {shlex.quote(foreign)}"
        return Refusal(
            "foreign_object", f"an object has the key {foreign!r}, which this program cannot have made", hint
        )
    if _ROLE_SERVER.search(text):
        return Refusal("no_credential", "no credential was found", _NO_CREDENTIAL)
    if not named and status in ("401", "403"):
        role = f"and the role of this machine, if it has one, is refused{f' ({code})' if code else ''}"
        return Refusal("no_credential", f"no credential was found in the environment, {role}", _NO_CREDENTIAL)
    if code == "NoSuchBucket":
        return Refusal("bucket_missing", f"there is no bucket {address.bucket}", "Create it, or name another.")
    if code in _ELSEWHERE or status in ("301", "307") or "incorrectly configured region" in text:
        region = _found(_REGION, text)
        hint = f"Set AWS_REGION={region}." if region else "Set AWS_REGION to the region of the bucket."
        return Refusal("wrong_region", f"the bucket is not in {address.region}, the region that was asked", hint)
    if code in _EXPIRED:
        hint = "Get a new one and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, then resume."
        return Refusal("credential_expired", "the credential has expired", hint)
    if code == "RequestTimeTooSkewed":
        why = "the clock of this machine is too far from the server's"
        return Refusal("clock_skew", why, "Set this machine's clock.")
    if code in _DENIED:
        hint = f"It must be allowed to list, read, write and delete objects below {address.url}."
        return Refusal("access_denied", f"the credential does not allow it ({code})", hint)
    if status in ("401", "403") or code == "InvalidToken":
        hint = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN where it is a temporary one."
        return Refusal("credential_refused", f"the server refuses the credential{f' ({code})' if code else ''}", hint)
    return _unanswered(text, status, code, address)


def _unanswered(text: str, status: str, code: str, address: Address) -> Refusal:
    hint = f"Check that the server at {address.endpoint} runs, then repeat the command."
    if status == "501":
        wanted = "A store needs conditional puts. Take another server or --store."
        return Refusal("unsupported_server", "the server cannot do that", wanted)
    if status:
        passing = status.startswith("5") or status in ("409", "429")
        why = f"the server answered {status}{f' ({code})' if code else ''}"
        return Refusal("server_error", why, hint, passing)
    if "timed out" in text or "TimedOut" in text:
        return Refusal("server_silent", "the server did not answer in time", hint, passing=True)
    return Refusal("server_unreachable", "the server could not be reached", hint, passing=True)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next((group for group in found.groups() if group), "") if found else ""
