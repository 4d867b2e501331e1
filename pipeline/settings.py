"""What a person may set for a run: names, defaults, environment variables; checked here, acted on elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pipeline.cost.budget import DEFAULT_CEILING_USD as DEFAULT_CEILING_USD
from pipeline.cost.budget import MOST_USD as MOST_USD
from pipeline.environment import default_out, default_store
from pipeline.errors import ConfigError

DEFAULT_MODEL = "claude-sonnet-5-5"
#: `--model offline`: no model, $0.00.
OFFLINE = "offline"
EFFORTS = ("low", "medium", "high", "xhigh", "max")
#: Steps `--until` may name; after publish a run is complete anyway.
UNTIL = ("seed", "sow", "lessons")
MAX_LESSONS = 120
#: `--concurrency auto`, and how many calls it may come to.
AUTO, AT_ONCE = "auto", 64
#: Effect classes that a resume can be asked to make again; what acts outside is never repeated for freshness.
REFRESHED = ("read", "pure")
#: How worst cases are bounded.
BUDGETS = ("worst", "estimate")
#: An expected cost above this is asked about on a terminal.
ASK_ABOVE_USD = Decimal(1)

#: What decides what the work is: pinned in the run.
IDENTITY = frozenset({"model", "effort", "lessons", "catalogue"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsOptions:
    """One start of the lessons pipeline, as asked for.

    Raises:
        ConfigError: A value is outside its range; names the option.
    """

    subject: str = ""
    level: str = ""
    #: None: Claude where a credential is set, else the offline author.
    model: str | None = None
    effort: str | None = None
    lessons: int = 18
    #: Folder with the user's own course files; None: the shipped ones.
    catalogue: Path | None = None
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
    #: Paid calls in flight; 1: everything inline; "auto": as many as the provider takes, up to AT_ONCE.
    concurrency: int | str = 4
    #: Where the items of maps are done: dask://HOST:PORT, dask:local; None: threads of this process.
    executor: str | None = None
    #: Stop after this step.
    until: str | None = None
    #: Make only the first N lessons, then stop.
    sample: int | None = None
    #: Ask through Message Batches at half the price; fewer waiting asks than batch_min go as ordinary calls.
    batch: bool = False
    batch_min: int = 1
    #: Hand batches in and leave; seconds between two looks at one.
    no_wait: bool = False
    batch_poll: float = 5.0
    #: Ask again what was handed in and cannot be found, though it may be paid twice.
    resubmit: bool = False
    #: A file with unit prices that win over the shipped ones.
    prices: Path | None = None
    dry_run: bool = False
    #: With dry_run: folder for a file of each prompt; "-": stdout.
    prompts: Path | None = None
    quiet: bool = False
    json: bool = False
    #: Run id, unique prefix or "latest".
    resume: str | None = None
    #: With resume: the step to begin from again.
    from_step: str | None = None
    #: With resume: effect class whose completed steps are made again (read, pure).
    refresh: str | None = None
    #: With resume: repeat what may have acted outside before it was cut off.
    retry_unknown: bool = False
    force: bool = False
    yes: bool = False
    accept_changes: bool = False
    skip_failed: bool = False
    #: Try again lessons that failed, also of a run that was completed without them.
    retry_failed: bool = False
    overwrite: bool = False
    #: Fields the user gave (option, environment or .env); the others are defaults.
    given: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._check_values()
        self._check_together()

    def _check_values(self) -> None:
        _within("lessons", self.lessons, 1, MAX_LESSONS)
        if self.concurrency != AUTO:
            _within("concurrency", int(self.concurrency), 1, 1000)
        _within("batch_min", self.batch_min, 1, 100_000)
        if not 0 < self.batch_poll <= 3600:
            raise ConfigError(f"--batch-poll is {self.batch_poll}; it is seconds, above 0 and at most 3600.")
        if self.sample is not None:
            _within("sample", self.sample, 1, MAX_LESSONS)
        allowed = {"effort": EFFORTS, "until": UNTIL, "budget": BUDGETS, "refresh": REFRESHED}
        for field, values in allowed.items():
            _one_of(field, getattr(self, field), values)
        for field in ("max_cost_usd", "daily_budget_usd"):
            usd = getattr(self, field)
            if usd is not None and not _is_amount(usd):
                raise ConfigError(f"{option_name(field)} is {usd}; it is an amount of dollars, or none.")

    def _check_together(self) -> None:
        if self.retry_failed and self.skip_failed:
            raise ConfigError("--retry-failed makes failed lessons again and --skip-failed does without; give one.")
        if self.force and self.resume:
            raise ConfigError("--force starts a new run and --resume continues one; give one of them.")
        if self.resume:
            return
        if self.from_step:
            raise ConfigError("--from makes a step of a run again: name the run with --resume RUN.")
        for field in ("refresh", "retry_unknown", "retry_failed"):
            if getattr(self, field):
                raise ConfigError(f"{option_name(field)} only applies together with --resume RUN.")

    @property
    def at_once(self) -> int:
        """Calls that may be in flight at most."""
        return AT_ONCE if self.concurrency == AUTO else int(self.concurrency)

    @property
    def store_url(self) -> str:
        """The store asked for, or the default one."""
        return self.store or default_store()

    @property
    def out_folder(self) -> Path:
        """The output folder, absolute; a relative one is the caller's."""
        return Path(os.path.expanduser(self.out or default_out())).absolute()


def option_name(field: str) -> str:
    """How a field is written on the command line."""
    return "--from" if field == "from_step" else "--" + field.replace("_", "-")


def option_fields() -> tuple[str, ...]:
    """The fields that are options, in the order of the dataclass."""
    return tuple(item.name for item in fields(LessonsOptions) if item.name != "given")


def parse_usd(text: str, name: str = "--max-cost-usd") -> Decimal | None:
    """An amount of dollars ("50", "$2.50"), or None for "none".

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
        raise ConfigError(f"{name} is {text!r}; it is an amount of dollars such as 2.50, or none.")
    return amount


def _is_amount(usd: Decimal) -> bool:
    # -0 is no amount: what stands behind the sign was forgotten.
    return usd.is_finite() and not usd.is_signed() and usd <= MOST_USD


def _within(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{option_name(field)} is {value}; it can be {low} to {high}.")


def _one_of(field: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise ConfigError(f"{option_name(field)} is {value!r}; it can be {', '.join(allowed)}.")
