"""Whom one may ask: what each provider can do, what models are called there, whose prices apply. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import ConfigError

#: The provider of runs that name none.
ANTHROPIC = "anthropic"
#: Any endpoint that speaks as OpenAI's does.
OPENAI = "openai"
#: A model of the user's own (FILE.py:NAME).
OWN = "own"
_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
#: First-party names of models begin so.
_CLAUDE = "claude-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What this program must know of a provider before it asks it."""

    #: As --provider takes it.
    name: str
    #: As people call it.
    title: str
    #: The class of Anthropic's SDK that speaks to it; "": it speaks as OpenAI's endpoints do (llm/openai).
    client: str = ""
    #: What must be installed for it; "": nothing more.
    extra: str = ""
    #: The published list whose prices it bills.
    prices: str = ANTHROPIC
    #: It takes Message Batches.
    batches: bool = False
    #: It counts the tokens of a request, free.
    counts: bool = True
    #: It documents that an error of its own (500, 529) is not billed; what others do is not known.
    free_errors: bool = False
    #: All its models have Claude in their names; elsewhere deployments are named freely.
    only_claude: bool = False
    #: It looks models up by their name, free.
    lists: bool = False
    #: Put before a first-party name of a model.
    prefix: str = ""
    #: How to log in, and the variables of the credential, for people; without a client it is the key's variable alone.
    login: str
    credential: str
    #: The variable of its address.
    base_variable: str
    #: What a try is charged can depend on where it is answered: worst cases leave room for that.
    geo: bool = False

    @property
    def address(self) -> str:
        """Return how its address is given, for people."""
        return f"--base-url (or {self.base_variable})"

    def named(self, model: str) -> str:
        """Return what a model is called at this provider; a name in another form is the provider's own."""
        return f"{self.prefix}{model}" if model.startswith(_CLAUDE) else model

    def priced(self, model: str) -> str:
        """Return under which name its list may price a model."""
        # An inference profile is named by an address that ends in its name.
        return self.named(model.strip()).lower().rpartition("/" if self.prefix else "\0")[2]


_AWS_LOGIN = (
    "Set AWS_REGION, and credentials that boto3 finds (AWS_PROFILE, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, a "
    "role)"
)
_GOOGLE_LOGIN = "log in with `gcloud auth application-default login` (or set GOOGLE_APPLICATION_CREDENTIALS)."
PROVIDERS: Mapping[str, Provider] = {
    each.name: each
    for each in (
        Provider(
            name=ANTHROPIC,
            credential="ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN)",
            title="Anthropic", client="Anthropic", batches=True, lists=True, geo=True, only_claude=True,
            free_errors=True, base_variable="ANTHROPIC_BASE_URL",
            login="Set ANTHROPIC_API_KEY (in the environment or in a .env file beside pipeline.sh).",
        ),
        Provider(
            name="bedrock",
            credential="the credentials of AWS (or AWS_BEARER_TOKEN_BEDROCK)",
            title="Amazon Bedrock", client="AnthropicBedrock", extra="bedrock",
            prices="aws",
            counts=False, prefix="global.anthropic.", base_variable="ANTHROPIC_BEDROCK_BASE_URL",
            login=f"{_AWS_LOGIN} or AWS_BEARER_TOKEN_BEDROCK.",
        ),
        Provider(
            name="bedrock-mantle",
            credential="the credentials of AWS (or AWS_BEARER_TOKEN_BEDROCK)",
            title="Amazon Bedrock (Mantle)", client="AnthropicBedrockMantle", extra="bedrock",
            prices="aws", prefix="anthropic.", base_variable="ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
            login=f"{_AWS_LOGIN} or AWS_BEARER_TOKEN_BEDROCK.",
        ),
        Provider(
            name="vertex",
            credential="Google's credentials",
            title="Google Vertex AI", client="AnthropicVertex", extra="vertex",
            prices="google",
            base_variable="ANTHROPIC_VERTEX_BASE_URL", geo=True, only_claude=True,
            login=f"Set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID, and {_GOOGLE_LOGIN}",
        ),
        Provider(
            name="foundry",
            credential="ANTHROPIC_FOUNDRY_API_KEY",
            title="Microsoft Foundry", client="AnthropicFoundry", geo=True,
            base_variable="ANTHROPIC_FOUNDRY_BASE_URL",
            login="Set ANTHROPIC_FOUNDRY_API_KEY, and ANTHROPIC_FOUNDRY_RESOURCE or ANTHROPIC_FOUNDRY_BASE_URL.",
        ),
        Provider(
            name="aws",
            credential="the credentials of AWS (or ANTHROPIC_AWS_API_KEY)",
            title="the Claude Platform on AWS", client="AnthropicAWS", extra="bedrock", batches=True,
            free_errors=True, lists=True, geo=True, base_variable="ANTHROPIC_AWS_BASE_URL", only_claude=True,
            login=f"Set ANTHROPIC_AWS_WORKSPACE_ID. {_AWS_LOGIN} or ANTHROPIC_AWS_API_KEY.",
        ),
        Provider(
            name="google-cloud",
            credential="Google's credentials",
            title="Claude on Google Cloud", client="AnthropicGoogleCloud", extra="vertex",
            batches=True, lists=True, geo=True,
            free_errors=True, base_variable="ANTHROPIC_GOOGLE_CLOUD_BASE_URL", only_claude=True,
            login="Set ANTHROPIC_GOOGLE_CLOUD_PROJECT and ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID, and " + _GOOGLE_LOGIN,
        ),
        Provider(
            name=OPENAI,
            credential="OPENAI_API_KEY",
            title="an OpenAI-compatible endpoint", extra="openai", prices=OPENAI, counts=False, geo=True,
            base_variable="OPENAI_BASE_URL",
            login="Set OPENAI_API_KEY (in the environment or in a .env file beside pipeline.sh).",
        ),
    )
}  # fmt: skip


def variables() -> list[str]:
    """Return the names of the variables that credentials and addresses are read from."""
    return _VARIABLE.findall(
        " ".join(f"{each.login} {each.credential} {each.base_variable}" for each in PROVIDERS.values())
    )


def provider_of(name: str | None) -> Provider:
    """Return a provider by the name that --provider takes; None: Anthropic.

    Raises:
        ConfigError: There is none of this name.
    """
    if (found := PROVIDERS.get(name or ANTHROPIC)) is not None:
        return found
    import difflib

    near = difflib.get_close_matches(str(name), PROVIDERS, n=1)
    raise ConfigError(
        f"There is no provider {name!r}; it can be {', '.join(PROVIDERS)}.",
        code="unknown_provider",
        hint=f"Did you mean --provider {near[0]}?" if near else "",
    )


def takes_batches(provider: str) -> bool:
    """Return whether a provider has batches; what is free has none that matter."""
    return provider in PROVIDERS and PROVIDERS[provider].batches


def able(what: str) -> str:
    """Return which providers can do a thing (a field of Provider), for people."""
    names = [each.name for each in PROVIDERS.values() if getattr(each, what)]
    return f"{', '.join(names[:-1])} or {names[-1]}"
