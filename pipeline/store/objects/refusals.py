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
    """Why a request came to nothing."""

    #: A clause, for the end of a sentence.
    why: str
    hint: str
    #: The same request may succeed in a moment.
    passing: bool = False
    #: Nothing was answered at all, though it was waited for.
    silent: bool = False
    #: A key stands there that the client cannot tell.
    foreign: bool = False


def refusal(text: str, address: Address, *, named: bool = True) -> Refusal:
    """What the error of a client says.

    Args:
        named: A variable of the environment names a credential, or where there is one.
    """
    status, code = _found(_STATUS, text), _found(_CODE, text)
    if foreign := _found(_FOREIGN, text):
        hint = f"Remove it: aws s3api delete-object --bucket {address.bucket} --key {shlex.quote(foreign)}"
        return Refusal(f"{foreign!r} stands there, which no key of this program is", hint, foreign=True)
    if _ROLES.search(text):
        return Refusal("no credential was found", _NO_CREDENTIAL)
    if not named and status in ("401", "403"):
        role = f"and the role of this machine, if it has one, is refused{f' ({code})' if code else ''}"
        return Refusal(f"no credential was found in the environment, {role}", _NO_CREDENTIAL)
    if code == "NoSuchBucket":
        return Refusal(f"there is no bucket {address.bucket}", "Make it, or name another.")
    if code in _ELSEWHERE or status in ("301", "307") or "incorrectly configured region" in text:
        region = _found(_REGION, text)
        hint = f"Set AWS_REGION={region}." if region else "Set AWS_REGION to the region of the bucket."
        return Refusal(f"the bucket is not in {address.region}, the region that was asked", hint)
    if code in _EXPIRED:
        hint = "Get a new one and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, then go on."
        return Refusal("the credential has expired", hint)
    if code == "RequestTimeTooSkewed":
        return Refusal("the clock of this machine is too far from the server's", "Set this machine's clock.")
    if code in _DENIED:
        hint = f"It must be allowed to list, read, write and delete objects below {address.url}."
        return Refusal(f"the credential does not allow it ({code})", hint)
    if status in ("401", "403") or code == "InvalidToken":
        hint = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN where it is a temporary one."
        return Refusal(f"the server refuses the credential{f' ({code})' if code else ''}", hint)
    return _unanswered(text, status, code, address)


def _unanswered(text: str, status: str, code: str, address: Address) -> Refusal:
    hint = f"Is the server at {address.endpoint} there? Then the same command again."
    if status == "501":
        return Refusal("the server cannot do that", "A store needs conditional puts. Take another server or --store.")
    if status:
        passing = status.startswith("5") or status in ("409", "429")
        return Refusal(f"the server answered {status}{f' ({code})' if code else ''}", hint, passing)
    if "timed out" in text or "TimedOut" in text:
        return Refusal("the server did not answer in time", hint, passing=True, silent=True)
    return Refusal("the server could not be reached", hint, passing=True)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next((group for group in found.groups() if group), "") if found else ""
