"""What asks models in a run, put together: ceiling, limits of the store, call ledger, pace, caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clock import iso
from pipeline.engine import preflight, store_limits
from pipeline.engine.calls import Caller, CallLedger, Gathering
from pipeline.engine.ceiling import Ceiling
from pipeline.engine.pace import MOST, Pace
from pipeline.engine.recorder import Recorder
from pipeline.engine.retry import CoolDown
from pipeline.engine.setup import Setup, host
from pipeline.engine.sources import Values
from pipeline.engine.stop import Stop
from pipeline.engine.watches import CacheWatch
from pipeline.environment import default_store
from pipeline.errors import ModelError
from pipeline.llm.base import Request
from pipeline.records.kinds import DayReserved
from pipeline.store.address import store_words

#: The value of the option `concurrency` that adapts to rate limits.
AUTO = "auto"


def at_once(options: Mapping[str, Any]) -> int:
    """Return how many calls may be in flight, and so how many threads work."""
    asked = options.get("concurrency")
    return MOST if asked == AUTO else max(int(asked or 4), 1)


def caller_of(
    setup: Setup,
    recorder: Recorder,
    values: Values,
    stop: Stop,
    *,
    like: Pace | None = None,
    batches: Callable[[CallLedger], Gathering] = lambda ledger: Gathering(),
) -> Caller | None:
    """Return what may spend money in a run; None where the run has no model.

    Args:
        like: Its pace shares what this one knows of the provider's limits.
        batches: Makes where asks are gathered for a batch.

    Raises:
        ConfigError: Batches were asked for, and the model takes none.
    """
    model, info, prices, options = setup.model, setup.info, setup.prices, setup.options
    if model is None or info is None or prices is None:
        return None
    ceiling = Ceiling(preflight.limits(options)[0], recorder, stop, setup.emit, _store_limits(setup, recorder))
    ledger = CallLedger(info, prices, recorder, setup.clock, setup.emit, stop, ceiling, _counter(setup))
    pace = Pace(setup.clock, stop, most=at_once(options), adaptive=options.get("concurrency") == AUTO, like=like)
    cool_down = CoolDown(setup.clock, stop, setup.emit)
    return Caller(model, ledger, values, cool_down, pace, setup.policy, CacheWatch(setup.emit), batches(ledger))


def _counter(setup: Setup) -> Callable[[Request], int | None] | None:
    """Return the model's own count of tokens, where worst cases are to be estimated; a count that fails gives None."""
    tokens = getattr(setup.model, "count_tokens", None)
    if setup.options.get("budget") != "estimate" or tokens is None:
        return None

    def counted(request: Request) -> int | None:
        try:
            return int(tokens(request))
        except ModelError:
            return None

    return counted


def _store_limits(setup: Setup, recorder: Recorder) -> store_limits.StoreLimits | None:
    """Return the limits over all processes of the store: of the day, if one is set, and those that fit the run."""
    (_, limit), paid = preflight.limits(setup.options), setup.info is not None and setup.info.paid
    account = setup.account
    if account is None or (limit is None and not paid):
        return None
    url, me = str(getattr(setup.store, "url", "")), host()
    process = f"{me['host']}:{me['pid']}:{iso(setup.clock.now())}"
    return store_limits.StoreLimits(
        account, limit, setup.clock, store_limits.owner_words(process, recorder.journal.run_id, recorder.owner),
        note=lambda name, day, usd: recorder.append(DayReserved(name, day, str(usd)), sync=False),
        labels=recorder.state.labels, words="" if url in ("", default_store()) else store_words(url),
        free=lambda day: store_limits.settle_dead(setup.store, account, day),
        seen=lambda day: store_limits.spent_on(setup.store, day),
    )  # fmt: skip
