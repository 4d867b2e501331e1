"""Puts together what may spend money in one owner's go at a run: ceiling, ledger entries, batches, the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clock import iso
from pipeline.engine import preflight
from pipeline.engine.batch_ledger import POLL_SECONDS, BatchPolicy
from pipeline.engine.batches import Post
from pipeline.engine.caching import CacheWatch
from pipeline.engine.calls import Caller
from pipeline.engine.daily import Daily
from pipeline.engine.desk import Desk
from pipeline.engine.entries import Entries
from pipeline.engine.left import settle_dead, spent_on
from pipeline.engine.limits import Ceiling, CoolDown
from pipeline.engine.pace import MOST, Pace
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import Setup, host
from pipeline.engine.sources import Values
from pipeline.engine.stop import Stop
from pipeline.errors import ConfigError, ModelError
from pipeline.llm.base import Request
from pipeline.records.kinds import DayReserved

#: The value of the option `concurrency` that says: find out.
AUTO = "auto"


def at_once(options: Mapping[str, Any]) -> int:
    """How many calls may be in flight, and so how many threads work."""
    asked = options.get("concurrency")
    return MOST if asked == AUTO else max(int(asked or 4), 1)


def caller(setup: Setup, recorder: Recorder, values: Values, stop: Stop, like: Pace | None = None) -> Caller | None:
    """The spender of a run; None where the run has no model.

    Args:
        like: Its pace shares what this one knows of the provider's limits.

    Raises:
        ConfigError: Batches were asked for, and the model takes none.
    """
    model, info, prices = setup.model, setup.info, setup.prices
    if model is None or info is None or prices is None:
        return None
    limit = preflight.limit(setup.options)
    ceiling = Ceiling(limit, recorder, stop, setup.clock, setup.emit, _daily(setup, recorder))
    entries = Entries(info, prices, recorder, setup.clock, setup.emit, stop, ceiling, _counter(setup))
    cool_down = CoolDown(setup.clock, stop, setup.emit)
    adaptive = setup.options.get("concurrency") == AUTO
    pace = Pace(setup.clock, stop, most=at_once(setup.options), adaptive=adaptive, like=like)
    watch = CacheWatch(setup.emit)
    return Caller(model, entries, values, cool_down, pace, setup.policy, watch, _desk(setup, entries))


def _counter(setup: Setup) -> Callable[[Request], int | None] | None:
    """The model's own count of tokens, where worst cases are to be estimated; a count that fails is no bound."""
    count = getattr(setup.model, "count_tokens", None)
    if setup.options.get("budget") != "estimate" or count is None:
        return None

    def counted(request: Request) -> int | None:
        try:
            return int(count(request))
        except ModelError:
            return None

    return counted


def _daily(setup: Setup, recorder: Recorder) -> Daily | None:
    """The day over all processes of the store: its limit, if one is set, and what is spent of it in any case."""
    limit, account = preflight.daily(setup.options), setup.account
    if account is None or (limit is None and not (setup.info and setup.info.paid)):
        return None
    owner = host()
    return Daily(
        account,
        limit,
        setup.clock,
        f"{owner['host']}:{owner['pid']}:{iso(setup.clock.now())}",
        note=lambda name, day, usd: recorder.append(DayReserved(name, day, str(usd)), sync=False),
        free=lambda day: settle_dead(setup.store, account, day),
        seen=lambda day: spent_on(setup.store, day),
    )


def _desk(setup: Setup, entries: Entries) -> Desk | None:
    """A place for asks to wait for a batch, if the run gathers them or has some out."""
    policy = batch_policy(setup.options)
    state = entries.recorder.state
    if not policy.gather and not any(call.batch for call in state.open_calls.values()):
        return None
    batches = getattr(setup.model, "batches", None)
    if batches is None:
        raise ConfigError(
            "This model takes no batches.", hint="Leave --batch out, or choose a Claude model with --model."
        )
    run = state.run_id
    post = Post(batches, entries, policy, command=lambda: setup.command(run))
    return Desk(post, policy)


def batch_policy(options: Mapping[str, Any]) -> BatchPolicy:
    """How a run uses batches, as its options say."""
    return BatchPolicy(
        gather=bool(options.get("batch")),
        least=int(options.get("batch_min") or 1),
        wait=not options.get("no_wait"),
        resubmit=bool(options.get("resubmit")),
        poll_seconds=float(options.get("batch_poll_seconds") or POLL_SECONDS),
    )
