"""What an object server's refusal means for people. Its text holds addresses and tokens: little of it is passed on."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from pipeline.store.objects.address import PROFILE_HINT, Address

_STATUS = re.compile(r"status code: (\d+)")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_REGION = re.compile(r"<Region>([a-z0-9-]{2,40})</Region>|expecting '([a-z0-9-]{2,40})'")
#: Where a machine of a cloud asks for its role: nothing else held a credential.
_ROLES = re.compile(r"169\.254\.|latest/api/token|credentials? provider", re.IGNORECASE)
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
    """Why a request failed."""

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
    if _ROLES.search(text):
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
