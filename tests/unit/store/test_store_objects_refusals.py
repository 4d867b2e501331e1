"""Refusals of an object server: a code, one clause, a hint, and nothing of what the server wrote."""

from __future__ import annotations

import pytest

from pipeline.store.objects.address import names_credential, parse_address
from pipeline.store.objects.refusals import refusal

ADDRESS = parse_address("s3://courses/team", {"AWS_REGION": "us-east-1"})


def told(status: int, code: str, more: str = "") -> str:
    """As the client words it."""
    body = f"<Error><Code>{code}</Code><Message>a-secret-of-nobody</Message>{more}</Error>" if code else ""
    return (
        f"Error performing GET https://x/a-secret-of-nobody - Server returned non-2xx status code: {status} X: {body}"
    )


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
        (
            told(400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-2'"),
            "wrong_region",
            "AWS_REGION=eu-west-2",
        ),
        ("Received redirect without LOCATION, … an incorrectly configured region", "wrong_region", "AWS_REGION"),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token - status code: 403",
            "no_credential",
            "aws configure export-credentials",
        ),
        (told(501, "NotImplemented"), "unsupported_server", "conditional puts"),
        (told(400, "KeyTooLongError"), "server_error", "Check that the server"),
    ],
)
def test_refusal_that_stays_has_a_code_and_a_hint(text: str, code: str, hint: str) -> None:
    found = refusal(text, ADDRESS)
    assert found.code == code
    assert hint in found.hint
    assert not found.passing
    assert "a-secret-of-nobody" not in f"{found}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (told(503, "SlowDown"), "server_error"),
        (told(500, ""), "server_error"),
        (told(409, "ConditionalRequestConflict"), "server_error"),
        (told(429, ""), "server_error"),
        ("HTTP error: operation timed out", "server_silent"),
        ("HTTP error: error sending request: Connection refused", "server_unreachable"),
    ],
)
def test_refusal_that_may_pass_is_known(text: str, code: str) -> None:
    assert (refusal(text, ADDRESS).code, refusal(text, ADDRESS).passing) == (code, True)


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (403, ""), (401, ""), (403, "InvalidAccessKeyId")])
def test_refusal_where_no_variable_holds_a_credential_says_so_and_which_are_read(status: int, code: str) -> None:
    found = refusal(told(status, code), ADDRESS, named=False)
    assert found.code == "no_credential"
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in found.hint
    assert refusal(told(404, "NoSuchBucket"), ADDRESS, named=False).code == "bucket_missing"


def test_credential_is_named_by_a_key_or_a_role() -> None:
    assert not names_credential({"AWS_REGION": "eu-west-2", "AWS_ACCESS_KEY_ID": " "})
    assert names_credential({"AWS_ACCESS_KEY_ID": "key"})
    assert names_credential({"AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"})
