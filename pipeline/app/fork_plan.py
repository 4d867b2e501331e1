"""What a fork would reuse and make again, and what that costs, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.app.cost_estimate import learn, remaining
from pipeline.app.course_identity import pinned, scheme_of, todays_prompts
from pipeline.app.course_work import CourseWork
from pipeline.app.model_choice import prices_for, provider_in
from pipeline.app.start import settings_now
from pipeline.app.travel import changes_of, meant
from pipeline.records.run import bare
from pipeline.settings import Execution
from pipeline.store.base import Store
from pipeline.store.reader import load
from pipeline.travel.fork import Forked
from pipeline.travel.fork import plan_fork as planned_fork
from pipeline.travel.values import usd_by_step

if TYPE_CHECKING:
    from pipeline.records.run import RunState


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """Describe a fork before it is made, and what resuming it would cost."""

    forked: Forked
    #: USD; None: not known.
    expected_usd: Decimal | None
    worst_usd: Decimal | None
    #: Where the expectation comes from.
    source: str

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        usd = {"expected_usd": self.expected_usd, "worst_usd": self.worst_usd, "source": self.source}
        return {**self.forked.to_json(), **usd}


def plan_fork(store: Store, run: str, *, at: str, assignments: Sequence[str]) -> ForkPlan:
    """Return what `fork` would make of a run, priced; nothing is written and no model is called.

    Raises:
        ConfigError, RunNotFound, SecretRefused, CheckpointCorrupt: As `fork`.
    """
    changes = changes_of(load(store, run), assignments)
    planned, child, last = planned_fork(store, run, at=at, changes=changes)
    planned = meant(store, planned)
    if child.pipeline == "lessons" and child.pins:
        return ForkPlan(planned, *_course_price(store, child))
    void = {*planned.followed, *(path for each in planned.void for path in each.paths)}
    kept = {bare(path) for path in planned.inherited if path not in void}
    spent = sum((usd for step, usd in usd_by_step(last).items() if step not in kept), Decimal(0))
    return ForkPlan(planned, spent, None, f"what run {run} paid for the same steps")


def _course_price(store: Store, child: RunState) -> tuple[Decimal | None, Decimal | None, str]:
    """Return (expected, worst) USD of the rest of a course, and where the expectation comes from."""
    pins = todays_prompts(store, child, {})
    course, prompts = pinned(store, child, pins)
    how, total = settings_now(Execution(), child.execution), int(child.identity.get("lessons") or 1)
    history = learn(store.heads(), str(child.identity.get("model")), course.subject)
    expected, worst = remaining(
        course, prompts, child.identity, prices_for(how, provider_in(child.identity)),
        CourseWork(total, child), scheme_of(store, child), batch=bool(how["batch"]), history=history,
    )  # fmt: skip
    return expected, worst, history.source
