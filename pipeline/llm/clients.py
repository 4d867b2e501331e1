"""The clients of Anthropic's SDK, one for each provider of Claude: made, whether they can log in, what they hide."""

from __future__ import annotations

import sys
from typing import Any

from pipeline.errors import CredentialMissing
from pipeline.extras import is_installed, not_installed, packages
from pipeline.llm.faults import redact
from pipeline.providers import ANTHROPIC, Provider

_CREDENTIAL_HEADERS = {"authorization", "x-api-key"}
#: What the clouds' own log-in and event streams raise, by the module that has it.
_CLOUDS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.eventstream", "ParserError"),
    ("google.auth.exceptions", "GoogleAuthError"),
)


def make_client(provider: Provider, http: Any, *, api_key: str | None, base_url: str | None) -> Any:
    """Return the SDK's client of a provider; nothing is sent.

    Args:
        http: What it sends with.
        api_key: None: whatever credential the client finds; given only to Anthropic.
        base_url: None: the provider's variable, or its own address.

    Raises:
        PackageMissing: Its extra is not installed.
        CredentialMissing: What it needs to know of the account is not set.
    """
    import anthropic

    if provider.extra and not all(map(is_installed, packages(provider.extra))):
        raise not_installed(provider.extra, f"--provider {provider.name}")
    # Its own spans would count calls twice, and tell the provider of what is traced here.
    spans = {"traces": False, "propagation": False}
    given: dict[str, Any] = {"max_retries": 0, "http_client": http, "open_telemetry": spans}
    given |= {"api_key": api_key} if api_key is not None else {}
    given |= {"base_url": base_url} if base_url else {}
    try:
        return getattr(anthropic, provider.client)(**given)
    except sdk_errors() as error:
        text = f"The credential cannot be loaded: {error}"
        raise CredentialMissing(redact(text, [api_key]), hint=provider.login) from None


def can_log_in(provider: Provider, client: Any) -> bool:
    """Return whether the client has a credential, as far as that shows without asking anybody.

    Google's are looked for by its own library, at the first request.
    """
    headers = {name.lower() for name, value in client.default_headers.items() if isinstance(value, str) and value}
    if getattr(client, "api_key", None) or headers & _CREDENTIAL_HEADERS:
        return True
    if provider.extra == "bedrock":
        import boto3  # type: ignore[import-untyped]

        return boto3.Session(region_name=client.aws_region).get_credentials() is not None
    return provider.name != ANTHROPIC or bool(client.auth_token or client.credentials)


def secrets_of(client: Any) -> tuple[str | None, ...]:
    """Return what no message may hold."""
    values = [value for name, value in client.default_headers.items() if name.lower() in _CREDENTIAL_HEADERS]
    values += [getattr(client, name, None) for name in ("api_key", "auth_token", "access_token")]
    return tuple(value for value in values if isinstance(value, str))


def is_regional(provider: Provider, client: Any) -> bool:
    """Return whether replies come from a region's own endpoint, which Vertex AI bills at a premium."""
    return provider.prices == "google" and client.region != "global"


def is_log_in(error: Exception) -> bool:
    """Return whether an error is of logging in, before anything was sent to the provider."""
    import anthropic

    own = isinstance(error, anthropic.CredentialsError) or type(error) is anthropic.AnthropicError
    return own or isinstance(error, (RuntimeError, *cloud_errors()))


def sdk_errors() -> tuple[type[Exception], ...]:
    """Return what a client may raise; asked once something is raised: the clouds' libraries load late."""
    import anthropic
    import httpx2

    http = (httpx2.HTTPError, httpx2.StreamError, ValueError, OSError)
    return (anthropic.AnthropicError, *http, RuntimeError, *cloud_errors())


def cloud_errors() -> tuple[type[Exception], ...]:
    """Return what the clouds' libraries raise, of those that are loaded."""
    return tuple(getattr(sys.modules[module], name) for module, name in _CLOUDS if module in sys.modules)
