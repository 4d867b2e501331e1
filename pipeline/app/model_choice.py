"""Who answers: the model that a start names, at the provider that it names, or one of the user's own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.cost.rates import provider_at
from pipeline.engine.pipeline import load_python
from pipeline.errors import ConfigError, CredentialMissing, ModelError, SettingsConflict
from pipeline.llm.base import Model, ModelInfo
from pipeline.providers import ANTHROPIC, OPENAI, OWN, PROVIDERS, able, provider_of
from pipeline.records.run import RunState
from pipeline.settings import DEFAULT_MODEL, OFFLINE, Identity

#: Variables with which the SDK finds a credential of Anthropic's by itself.
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN_FILE")
#: The verbs of a Model.
_VERBS = ("check", "complete", "close")


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model of the user's own, named by FILE.py:NAME."""

    target: str
    model: Model
    #: As its own check() says it.
    id: str

    @property
    def words(self) -> str:
        """Return the option that names it again."""
        return f" --model {shlex.quote(self.target)}"


def is_own(name: str | None) -> bool:
    """Return whether a model's name is FILE.py:NAME, or that without its NAME."""
    return bool(name) and (str(name).endswith(".py") or str(name).rpartition(":")[0].endswith(".py"))


def load_own(target: str) -> OwnModel:
    """Return the model that FILE.py:NAME names: a Model, or a class or function that makes one.

    Raises:
        ConfigError: No such file, it cannot be imported, or NAME is no Model.
        ModelError: As its check() raises it.
    """
    file, _, name = target.rpartition(":")
    if not (file and name):
        raise _no_model(target, "no NAME follows the file, as in FILE.py:NAME")
    found: Any = getattr(load_python(file), name, None)
    doing = "calling it"
    try:
        if callable(found) and (isinstance(found, type) or not hasattr(found, "complete")):
            found = found()
        missing = [verb for verb in _VERBS if not callable(getattr(found, verb, None))]
        if missing:
            raise _no_model(target, f"it has no {', '.join(f'{verb}()' for verb in missing)}")
        doing = "its check()"
        info = found.check()
    except (ConfigError, ModelError):
        raise
    except Exception as error:
        raise _no_model(target, f"{doing} raised {type(error).__name__}: {error}") from error
    if not isinstance(getattr(info, "id", None), str):
        raise _no_model(target, f"its check() returned a {type(info).__name__}, wanted a ModelInfo")
    return OwnModel(target, found, info.id)


def _no_model(target: str, why: str) -> ConfigError:
    """Return the error of a model of the user's own that is none."""
    return ConfigError(
        f"{target} is no Model: {why}.", code="no_model_object",
        hint="Wanted is what `pipeline.ScriptedModel` is: an object with check(), which returns a ModelInfo, "
        "complete(request), which returns a Reply, and close(); or a class or function that makes one.",
    )  # fmt: skip


def with_own(asked: Identity) -> tuple[Identity, OwnModel | None]:
    """Return the settings with the plain name of a model that is the user's own, and that model.

    Raises:
        ConfigError, ModelError: As load_own.
    """
    if not is_own(asked.model):
        return asked, None
    own = load_own(str(asked.model))
    return replace(asked, model=own.id, provider=OWN, given=asked.given | {"provider"}), own


def has_credential() -> bool:
    """Return whether the environment holds something the SDK can log in with at Anthropic."""
    return any(os.environ.get(name, "").strip() for name in _CREDENTIALS)


def model_name(asked: str | None, provider: str | None = None, base_url: str | None = None) -> str:
    """Return the model that writes: as asked, else Claude where a credential is set, else the offline author.

    Args:
        provider: As asked; None: Anthropic, if it can be.
        base_url: Of a gateway, which may have models of any name.

    Raises:
        CredentialMissing: A model of Anthropic's was asked for without a credential.
        ConfigError: It cannot be one of this provider's.
    """
    if asked is None and provider is None:
        return DEFAULT_MODEL if has_credential() else OFFLINE
    name = asked or default_model(provider)
    check_asked_model(name, provider, base_url)
    if name != OFFLINE and provider in (None, ANTHROPIC) and not has_credential():
        raise CredentialMissing(
            f"--model {name} needs a credential, and none is set.",
            hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh), or use --model offline.",
        )
    return name


def default_model(provider: str | None) -> str:
    """Return the model that is asked where none is named.

    Raises:
        ConfigError: The provider has models of all kinds.
    """
    if not provider_of(provider).client:
        raise ConfigError(
            f"--provider {provider} needs the name of a model.", code="model_missing",
            hint="Name it as the endpoint does: --model NAME.",
        )  # fmt: skip
    return DEFAULT_MODEL


def check_asked_model(name: str, provider: str | None = None, base_url: str | None = None) -> None:
    """Refuse a model of another provider before a credential is asked for; a gateway may have models of any name.

    Raises:
        ConfigError: It is one, or there is no such provider.
    """
    if provider == OWN:
        return
    found = provider_of(provider)
    gateway = base_url or os.environ.get(found.base_variable, "").strip()
    if not is_claude(name) and found.only_claude and not gateway:
        raise ConfigError(
            f"{name!r} is not a Claude model, and {found.title} is asked only for Claude models.",
            code="unknown_model",
            hint=f"For example --model {DEFAULT_MODEL}; {found.address} names a gateway that offers other "
            "models, and --provider openai asks any OpenAI-compatible endpoint.",
        )


def is_claude(name: str) -> bool:
    """Return whether a name can be a Claude model's, or means none."""
    return name == OFFLINE or "claude" in name.lower() or "anthropic" in name.lower()


def check_able(provider: str | None, how: Mapping[str, Any]) -> None:
    """Refuse what a provider cannot do, before anything is looked up.

    Raises:
        ConfigError: It takes no batches or counts no tokens, and that is asked for; says what to do instead.
    """
    if provider == OWN:
        return
    found = provider_of(provider)
    if how.get("batch") and not found.batches:
        raise ConfigError(
            f"{found.title[0].upper()}{found.title[1:]} takes no Message Batches, so --batch cannot be used.",
            code="batches_unsupported",
            hint=f"Omit --batch (--no-batch), or use --provider {able('batches')}.",
        )
    if how.get("budget") == "estimate" and not found.counts:
        raise ConfigError(
            f"{found.title[0].upper()}{found.title[1:]} counts no tokens beforehand, so --budget estimate cannot be "
            "used.",
            code="counting_unsupported",
            hint="Omit --budget (worst cases are then bounded by the bytes that are sent), or use --provider "
            f"{able('counts')}.",
        )


def check_model_change(state: RunState, asked: str, provider: str | None = None, *, accept: bool) -> None:
    """Refuse another model, or provider, than the run was made with.

    Raises:
        SettingsConflict: It is another one, and changes are not accepted.
    """
    pinned, its = str(state.identity.get("model") or ""), provider_in(state.identity)
    hint = "Omit the option to continue as before, or --accept-changes to run again what it affects."
    if accept:
        return
    if pinned and asked != pinned:
        raise SettingsConflict(
            f"Run {state.run_id} was made with --model {pinned}, but {asked} is given now.",
            code="other_model", hint=hint, changed={"model": [pinned, asked]},
        )  # fmt: skip
    if provider is not None and provider != its:
        raise SettingsConflict(
            f"Run {state.run_id} was made with --provider {its}, but {provider} is given now.",
            code="other_provider", hint=hint, changed={"provider": [its, provider]},
        )  # fmt: skip


def provider_in(identity: Mapping[str, Any]) -> str:
    """Return the provider that a run is made with: of versions that knew no other, Anthropic."""
    found = str(identity.get("provider") or OFFLINE)
    if found == OFFLINE:
        return ANTHROPIC
    # What another name says is who bills: a host that speaks as OpenAI's.
    return found if found in (*PROVIDERS, OWN) else OPENAI


def with_provider(identity: Mapping[str, Any], provider: str | None) -> dict[str, Any]:
    """Return who answers as recorded, with the provider as it was asked for; a draft has none."""
    if provider is None or not identity or identity.get("author") == OFFLINE:
        return dict(identity)
    return {**identity, "provider": provider}


def author_kind(model: str) -> str:
    """Return whether "offline" or "model" writes; the two are never mixed."""
    return "offline" if model == OFFLINE else "model"


def model_of(
    name: str,
    *,
    provider: str | None = None,
    base_url: str | None = None,
    own: OwnModel | None = None,
    own_file: str = "FILE.py:NAME",
    courses: bool = True,
    bank: str | None = None,
) -> Model:
    """Return the model of that name, not yet looked up.

    Args:
        own: The user's own, where one is given.
        own_file: What a run that has such a model says of where it is.
        bank: Folder with people's own topics, for the offline author.
        courses: It is asked for lessons, which the offline author can write; other work gets stand-in answers.

    Raises:
        ConfigError: The name is of no model of this provider, or the run's own model is not given.
        CredentialMissing, PackageMissing: The provider cannot be asked.
    """
    if name == OFFLINE and not courses:
        from pipeline.llm.script import offline_model

        return offline_model()
    if name == OFFLINE:
        from pipeline.bank.topic import Bank
        from pipeline.lessons.offline import OfflineAuthor

        return OfflineAuthor(Bank([Path(bank)] if bank else []))
    if own is not None:
        return own.model
    if provider == OWN:
        raise ConfigError(
            f"The model {name!r} of this run is one of your own, and is not given.",
            code="own_model_missing",
            hint=f"Name it again: --model {shlex.quote(own_file)}",
        )
    check_asked_model(name, provider, base_url)
    provider = provider or ANTHROPIC
    if not provider_of(provider).client:
        from pipeline.llm.openai import OpenAIModel

        return OpenAIModel(name, base_url=base_url, provider=provider)
    from pipeline.llm.anthropic import AnthropicModel

    return AnthropicModel(name, base_url=base_url, provider=provider)


def billed_by(info: ModelInfo, model: Model, *, own: bool = False) -> ModelInfo:
    """Return what is known of a model with who bills it: a host with prices of its own, as the published lists know.

    Args:
        own: It is the user's own: where its check() names no other and its name is not Claude's, Anthropic has no part.
    """
    if own and info.provider == ANTHROPIC and not is_claude(info.id):
        return replace(info, provider=OWN)
    address = getattr(model, "address", "")
    return replace(info, provider=provider_at(address) or info.provider) if address else info


def prices_for(how: Mapping[str, Any], provider: str | None) -> PriceBook:
    """Return the prices of a start: its own file's first, then the provider's.

    Raises:
        InvalidValue: The file cannot be read.
    """
    file, name = how.get("prices"), ANTHROPIC if provider in (None, OWN) else str(provider)
    regional = name == "vertex" and os.environ.get("CLOUD_ML_REGION", "global") not in ("", "global")
    return PriceBook(Path(file) if file else None, name, regional=regional)
