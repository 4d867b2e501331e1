"""Every provider behind its own path, as the contract of the model seam is run over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.llm.openai import OpenAIModel
from pipeline.providers import PROVIDERS, Provider
from tests.servers.platforms import PlatformServer

#: No credential of anybody's; each is looked for where it must not be.
KEYS = {
    "anthropic": "sk-ant-api03-not-a-real-key-0123456789", "amazon": "AKIAIOSFODNN7EXAMPLE",
    "bearer": "bedrock-api-key-0123456789abcdef", "foundry": "foundry-key-0123456789abcdef",
    "openai": "sk-proj-not-a-real-key-0123456789", "google": "ya29.token-of-the-test",
}  # fmt: skip
#: The path below the server's address.
_BELOW = {"vertex": "/v1", "foundry": "/anthropic", "openai": "/openai/v1", "google-cloud": "/invoke"}
#: What a credential of each looks like on the wire.
AUTHORIZATIONS: Mapping[str, str] = {
    "anthropic": KEYS["anthropic"], "bedrock": "AWS4-HMAC-SHA256 Credential=AKIA", "bedrock-mantle": KEYS["bearer"],
    "vertex": KEYS["google"], "foundry": KEYS["foundry"], "aws": "AWS4-HMAC-SHA256 Credential=AKIA",
    "google-cloud": KEYS["google"], "openai": KEYS["openai"],
}  # fmt: skip


def variables(name: str, url: str, folder: Path) -> dict[str, str]:
    """What a person sets to ask a provider, with its address on this machine."""
    base = {PROVIDERS[name].base_variable: url + _BELOW.get(name, "")}
    amazon = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": KEYS["amazon"], "AWS_SECRET_ACCESS_KEY": "secret",
              "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip
    google = {"GOOGLE_APPLICATION_CREDENTIALS": str(_account(url, folder)) if PROVIDERS[name].extra == "vertex" else ""}
    own: Mapping[str, dict[str, str]] = {
        "anthropic": {"ANTHROPIC_API_KEY": KEYS["anthropic"]},
        "bedrock": amazon,
        "bedrock-mantle": {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": KEYS["bearer"]},
        "vertex": {**google, "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "project-1"},
        "foundry": {"ANTHROPIC_FOUNDRY_API_KEY": KEYS["foundry"]},
        "aws": {**amazon, "ANTHROPIC_AWS_WORKSPACE_ID": "wrkspc_1"},
        "google-cloud": {**google, "ANTHROPIC_GOOGLE_CLOUD_PROJECT": "project-1",
                         "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID": "wrkspc_1"},
        "openai": {"OPENAI_API_KEY": KEYS["openai"]},
    }  # fmt: skip
    return {**base, **own[name]}


def _account(url: str, folder: Path) -> Path:
    """A service account whose tokens come from this machine."""
    # A worker may come back to a module whose server, and so whose address, is another one by then.
    path = folder / f"account-{url.rpartition(':')[2]}.json"
    if not path.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        document = {"type": "service_account", "project_id": "project-1", "private_key_id": "1",
                    "private_key": pem.decode(), "client_email": "test@project-1.iam", "client_id": "1",
                    "token_uri": f"{url}/token"}  # fmt: skip
        path.write_text(json.dumps(document))
    return path


@dataclass
class Subject:
    """A provider, the model that is asked there, and the server in front of the bill."""

    provider: Provider
    server: PlatformServer
    make: Callable[..., Any]
    model: Any

    @property
    def model_id(self) -> str:
        return model_id(self.provider.name)

    def ask(self, text: str = "What is a gradient?", **more: Any) -> Request:
        return Request(self.model_id, [Message("user", text)], **more)


def model_id(name: str) -> str:
    return "gpt-5-mini" if not PROVIDERS[name].client else "claude-sonnet-5-5"


def made(name: str, **more: Any) -> Any:
    """The model of a provider, made from the variables that are set."""
    if not PROVIDERS[name].client:
        return OpenAIModel(model_id(name), provider=name, **more)
    return AnthropicModel(model_id(name), provider=name, **more)
