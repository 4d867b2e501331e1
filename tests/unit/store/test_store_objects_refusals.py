"""What is said of an object server's refusals: one clause, a hint, and nothing of what it wrote."""

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
    ("text", "why", "hint"),
    [
        (told(400, "ExpiredToken"), "the credential has expired", "AWS_SESSION_TOKEN"),
        (told(403, "AccessDenied"), "does not allow it (AccessDenied)", "below s3://courses/team"),
        (told(403, "SignatureDoesNotMatch"), "refuses the credential (SignatureDoesNotMatch)", "AWS_SECRET_ACCESS_KEY"),
        (told(400, "InvalidToken"), "refuses the credential (InvalidToken)", "AWS_SESSION_TOKEN"),
        (told(401, ""), "refuses the credential", "AWS_ACCESS_KEY_ID"),
        (told(403, "RequestTimeTooSkewed"), "the clock of this machine", "clock"),
        (told(404, "NoSuchBucket"), "there is no bucket courses", "Make it"),
        (told(301, "PermanentRedirect"), "not in us-east-1", "AWS_REGION"),
        (told(400, "AuthorizationHeaderMalformed", "<Region>eu-west-2</Region>"), "us-east-1", "AWS_REGION=eu-west-2"),
        (
            told(400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-2'"),
            "not in us-east-1",
            "AWS_REGION=eu-west-2",
        ),
        ("Received redirect without LOCATION, … an incorrectly configured region", "not in us-east-1", "AWS_REGION"),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token - status code: 403",
            "no credential was found",
            "aws configure export-credentials",
        ),
        (told(501, "NotImplemented"), "cannot do that", "conditional puts"),
        (told(400, "KeyTooLongError"), "answered 400 (KeyTooLongError)", "there?"),
    ],
)
def test_refusal_that_stays_is_one_clause_with_a_hint(text: str, why: str, hint: str) -> None:
    said = refusal(text, ADDRESS)
    assert why in said.why
    assert hint in said.hint
    assert not said.passing
    assert "a-secret-of-nobody" not in f"{said}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (told(503, "SlowDown"), "answered 503 (SlowDown)"),
        (told(500, ""), "answered 500"),
        (told(409, "ConditionalRequestConflict"), "answered 409"),
        (told(429, ""), "answered 429"),
        ("HTTP error: operation timed out", "did not answer in time"),
        ("HTTP error: error sending request: Connection refused", "could not be reached"),
    ],
)
def test_refusal_that_may_pass_is_known(text: str, why: str) -> None:
    said = refusal(text, ADDRESS)
    assert why in said.why
    assert said.passing


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (403, ""), (401, ""), (403, "InvalidAccessKeyId")])
def test_refusal_where_no_variable_holds_a_credential_says_so_and_which_are_read(status: int, code: str) -> None:
    said = refusal(told(status, code), ADDRESS, named=False)
    assert said.why.startswith("no credential was found in the environment")
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in said.hint
    assert refusal(told(404, "NoSuchBucket"), ADDRESS, named=False).why == "there is no bucket courses"


def test_credential_is_named_by_a_key_or_a_role() -> None:
    assert not names_credential({"AWS_REGION": "eu-west-2", "AWS_ACCESS_KEY_ID": " "})
    assert names_credential({"AWS_ACCESS_KEY_ID": "key"})
    assert names_credential({"AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"})
