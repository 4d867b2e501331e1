"""What a person may set for a run: names, defaults, environment variables; checked here, acted on elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline.cost.admission import DEFAULT_CEILING_USD as DEFAULT_CEILING_USD
from pipeline.cost.admission import MOST_USD as MOST_USD
from pipeline.environment import default_out, default_store
from pipeline.errors import ConfigError
from pipeline.providers import OWN, provider_of

DEFAULT_MODEL = "claude-sonnet-5-5"
#: `--model offline`: no model, $0.00.
OFFLINE = "offline"
EFFORTS = ("low", "medium", "high", "xhigh", "max")
#: Steps `--until` may name; after publish a run is complete anyway.
UNTIL = ("seed", "sow", "lessons")
MAX_LESSONS = 120
#: `--concurrency auto`, and how many calls it may come to.
AUTO, AT_ONCE = "auto", 64
#: Effect classes whose steps a resume can run again; what acts outside is never repeated for freshness.
REFRESHED = ("read", "pure")
#: How worst cases are bounded.
BUDGETS = ("worst", "estimate")
#: An expected cost above this is asked about on a terminal.
ASK_ABOVE_USD = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What decides the work of a course.

    Raises:
        ConfigError: A value is outside its range; names the option.
    """

    subject: str = ""
    level: str = ""
    #: None: Claude where a credential is set, else the offline author.
    model: str | None = None
    #: Whom to ask for it (providers.PROVIDERS); None: the run's own provider, else Anthropic.
    provider: str | None = None
    effort: str | None = None
    lessons: int = 18
    #: Questions are solved by a call that sees no key, and the answers compared.
    blind_solve: bool = True
    #: Folder with the user's own course files; None: the shipped ones.
    catalogue: Path | None = None
    #: Folder with the user's own topics of the question bank, for the offline author; None: the shipped ones.
    bank: Path | None = None
    #: Fields the user gave (option, environment or .env); the others are defaults.
    given: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _within("lessons", self.lessons, 1, MAX_LESSONS)
        _one_of("effort", self.effort, EFFORTS)
        if self.provider != OWN:
            provider_of(self.provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How one start works.

    Raises:
        ConfigError: A value is outside its range, or two exclude each other; names the options.
    """

    #: "files:DIR"; "": beside pipeline.sh.
    store: str = ""
    #: None: beside pipeline.sh.
    out: Path | None = None
    #: Ceiling of the run's spend, all resumes included; None: none.
    max_cost_usd: Decimal | None = DEFAULT_CEILING_USD
    #: How the worst case of a call is bounded: worst (its bytes), estimate (the provider's count).
    budget: str = "worst"
    #: Limit of a UTC day over all runs of the store; None: none.
    daily_budget_usd: Decimal | None = None
    #: What the run counts towards: "project=x,team=maths" (records.budgets.labels_text).
    labels: str = ""
    #: Paid calls in flight; 1: sequential; "auto": adapted to rate limits, up to AT_ONCE.
    concurrency: int | str = 4
    #: Where map items run: dask://HOST:PORT, dask:local; None: threads of this process.
    executor: str | None = None
    #: Stop after this step.
    until: str | None = None
    #: Make only the first N lessons, then stop.
    sample: int | None = None
    #: Ask through Message Batches at half the price; fewer waiting requests than batch_min are sent individually.
    batch: bool = False
    batch_min: int = 1
    #: Submit batches and exit; polling interval in seconds.
    no_wait: bool = False
    batch_poll: float = 5.0
    #: Resubmit the requests of a lost batch, which may be billed twice.
    resubmit: bool = False
    #: The endpoint that is asked; None: the provider's variable, or its own address.
    base_url: str | None = None
    #: A file with unit prices that win over the shipped ones.
    prices: Path | None = None
    #: Only show what would be done.
    dry_run: bool = False
    #: Run id, unique prefix or "latest".
    resume: str | None = None
    #: With resume: run this step and those after it again.
    from_step: str | None = None
    #: With resume: effect class whose completed steps run again (read, pure).
    refresh: str | None = None
    #: With resume: retry side effects whose outcome is unknown.
    retry_unknown: bool = False
    force: bool = False
    yes: bool = False
    accept_changes: bool = False
    skip_failed: bool = False
    #: Publish only what a person approved or edited.
    review: bool = False
    #: Formats that a course is published with beside its pages: "docx,pdf"; "", none: with none.
    downloads: str = ""
    #: Retry lessons that failed, also of a run that was completed without them.
    retry_failed: bool = False
    overwrite: bool = False
    #: As Identity.given.
    given: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.concurrency != AUTO:
            _within("concurrency", int(self.concurrency), 1, 1000)
        _within("batch_min", self.batch_min, 1, 100_000)
        if not 0 < self.batch_poll <= 3600:
            raise _invalid(f"--batch-poll is {self.batch_poll}; it must be a number of seconds above 0, at most 3600.")
        if self.sample is not None:
            _within("sample", self.sample, 1, MAX_LESSONS)
        for field, values in {"until": UNTIL, "budget": BUDGETS, "refresh": REFRESHED}.items():
            _one_of(field, getattr(self, field), values)
        for field in ("max_cost_usd", "daily_budget_usd"):
            usd = getattr(self, field)
            if usd is not None and not _is_amount(usd):
                raise _invalid(f"{option_name(field)} is {usd}; it must be an amount of dollars, or none.")
        if self.base_url is not None and not _is_plain_url(self.base_url):
            raise _invalid("--base-url must be an http:// or https:// address without user, password and query; "
                           "credentials are set in variables.")  # fmt: skip
        self._check_together()

    def _check_together(self) -> None:
        if self.retry_failed and self.skip_failed:
            raise _conflicting("--retry-failed and --skip-failed exclude each other; give one.")
        if self.force and self.resume:
            raise _conflicting("--force starts a new run and --resume continues one; give one of them.")
        if self.resume:
            return
        for field in ("from_step", "refresh", "retry_unknown", "retry_failed"):
            if getattr(self, field):
                raise _conflicting(f"{option_name(field)} only applies together with --resume RUN.")

    @property
    def at_once(self) -> int:
        """Return calls that may be in flight at most."""
        return AT_ONCE if self.concurrency == AUTO else int(self.concurrency)

    @property
    def store_url(self) -> str:
        """Return the store asked for, or the default one."""
        return self.store or default_store()

    @property
    def store_given(self) -> str:
        """Return the store where one was given; else ""."""
        return self.store if "store" in self.given else ""

    @property
    def out_folder(self) -> Path:
        """Return the output folder, absolute; a relative one is the caller's."""
        return Path(os.path.expanduser(self.out or default_out())).absolute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """What is shown of one start, and how."""

    #: With dry_run: folder for a file of each prompt; "-": stdout.
    prompts: Path | None = None
    quiet: bool = False
    json: bool = False
    #: Traces are sent to a collector; None: where the standard variables name one. With prompts and replies.
    otel: bool | None = None
    otel_content: bool = False


def options_of(values: Mapping[str, Any]) -> tuple[Identity, Execution, Display]:
    """Return the settings that were given as the three values; the others keep their defaults.

    Raises:
        ConfigError: A value is outside its range.
    """
    identity, execution, display = (
        {item.name: values[item.name] for item in fields(kind) if item.name in values} for kind in _KINDS
    )
    return (
        Identity(**identity, given=frozenset(identity)),
        Execution(**execution, given=frozenset(execution)),
        Display(**display),
    )


_KINDS: tuple[Any, ...] = (Identity, Execution, Display)


def option_name(field: str) -> str:
    """Return how a field is written on the command line."""
    own = {"from_step": "--from", "downloads": "--with", "labels": "--label"}
    return own.get(field) or "--" + field.replace("_", "-")


def option_fields() -> tuple[str, ...]:
    """Return the names of all settings."""
    return tuple(item.name for kind in _KINDS for item in fields(kind) if item.name != "given")


def parse_usd(text: str, name: str = "--max-cost-usd") -> Decimal | None:
    """Return an amount of dollars ("50", "$2.50"), or None for "none".

    Raises:
        ConfigError: It is neither.
    """
    if text.strip().lower() == "none":
        return None
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not _is_amount(amount):
        raise _invalid(f"{name} is {text!r}; it must be an amount of dollars such as 2.50, or none.")
    return amount


def _invalid(message: str) -> ConfigError:
    return ConfigError(message, code="invalid_option")


def _conflicting(message: str) -> ConfigError:
    return ConfigError(message, code="conflicting_options")


def _is_amount(usd: Decimal) -> bool:
    # -0 is no amount: what stands behind the sign was forgotten.
    return usd.is_finite() and not usd.is_signed() and usd <= MOST_USD


def _is_plain_url(text: str) -> bool:
    """Return whether an address can be recorded and reached: it holds no credential, and its port exists."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = port != 0 and parts.username is None and parts.password is None and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain


def _within(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise _invalid(f"{option_name(field)} is {value}; it can be {low} to {high}.")


def _one_of(field: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise _invalid(f"{option_name(field)} is {value!r}; it can be {', '.join(allowed)}.")
