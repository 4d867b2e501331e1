"""Moves money between sums as calls start, end, settle or turn out wasted. Called by the fold only."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from pipeline.records.charge import EXACT, INTERVAL, Charge
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled
from pipeline.records.run import CallRun, RunState, Spend, SpendKey, bare

USED, WASTED, OPEN = "used", "wasted", "open"
_REFUSAL = "refusal"
_ZERO = Decimal(0)

#: (path, task, attempt).
Slot = tuple[str, str | None, int]


class Spending:
    """The part of the fold that counts money, over one RunState."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        #: Used spend by attempt, so that an attempt can turn wasted as a whole.
        self._paid: dict[Slot, dict[SpendKey, Spend]] = {}
        #: Ended calls whose charge can still be settled: (slot, key, what was counted).
        self._unsettled: dict[int, tuple[Slot, SpendKey, Spend]] = {}
        self._settled: set[int] = set()

    def start(self, seq: int, at: str, fact: CallStarted) -> CallRun:
        """Count an open call at its worst case; returns the try."""
        worst = None if fact.worst is None else Decimal(fact.worst)
        call = CallRun(
            seq=seq,
            k=fact.k,
            model=fact.model,
            label=fact.label,
            worst=worst,
            at=at,
            path=fact.path,
            task=fact.task,
            attempt=fact.attempt,
            key=fact.key,
            n=fact.n,
        )
        self._state.open_calls[seq] = call
        self._put(_key(call, OPEN), _open(call))
        return call

    def end(self, seq: int, at: str, fact: CallEnded) -> tuple[CallRun, CallRun] | None:
        """Replace the open amount by the charge; returns the try as it was and as it is.

        An end without its start (lost in a gap) counts its money under no step.
        """
        if fact.call in self._settled:
            return None
        call = self._state.open_calls.pop(fact.call, None)
        charge = counted(Charge.from_json(fact.charge))
        if call is None:
            self._put(SpendKey("", "", "", at[:10], WASTED), charge)
            return None
        self._take(_key(call, OPEN), _open(call))
        slot = (call.path, call.task, call.attempt)
        closed = self._state.attempts.get((call.path, call.task), 1) > call.attempt
        good = fact.usable and fact.error is None and fact.stop_reason != _REFUSAL and not closed
        key = _key(call, USED if good else WASTED)
        self._put(key, charge)
        if good:
            self._paid.setdefault(slot, {}).setdefault(key, Spend()).add(charge)
        if fact.charge["state"] != EXACT:
            self._unsettled[call.seq] = (slot, key, charge)
        ended = replace(
            call,
            ended=True,
            usable=fact.usable,
            reply=fact.reply,
            error=fact.error,
            stop_reason=fact.stop_reason,
            ended_seq=seq,
        )
        return call, ended

    def settle(self, fact: ChargeSettled) -> None:
        """Put a known amount in the place of an interval, an unpriced charge or an open call."""
        call = self._state.open_calls.pop(fact.call, None)
        usd = Decimal(fact.usd)
        if call is not None:
            self._take(_key(call, OPEN), _open(call))
            self._put(_key(call, WASTED), Spend(calls=1, usd=usd))
            self._settled.add(fact.call)
            return
        found = self._unsettled.pop(fact.call, None)
        if found is None:
            return
        slot, key, before = found
        after = Spend(calls=1, tokens=dict(before.tokens), usd=usd)
        sums = self._paid.get(slot, {})
        if key in sums:
            sums[key].subtract(before)
            sums[key].add(after)
        elif key.outcome == USED:
            key = replace(key, outcome=WASTED)
        self._take(key, before)
        self._put(key, after)

    def waste(self, slot: Slot) -> None:
        """The attempt was for nothing: what it used turns wasted."""
        for key, amount in self._paid.pop(slot, {}).items():
            self._take(key, amount)
            self._put(replace(key, outcome=WASTED), amount)

    def _put(self, key: SpendKey, amount: Spend) -> None:
        spend = self._state.spend
        bucket = spend.get(key)
        if bucket is None:
            bucket = spend[key] = Spend()
        bucket.add(amount)
        self._state.total.add(amount)

    def _take(self, key: SpendKey, amount: Spend) -> None:
        bucket = self._state.spend[key]
        bucket.subtract(amount)
        self._state.total.subtract(amount)
        if not bucket.calls:
            del self._state.spend[key]


def counted(charge: Charge) -> Spend:
    """One call's charge as a sum."""
    tokens = dict(charge.tokens)
    if charge.state == EXACT:
        return Spend(calls=1, tokens=tokens, usd=charge.low, usd_by_kind=dict(charge.parts))
    if charge.state == INTERVAL:
        high = charge.low if charge.high is None else charge.high
        return Spend(calls=1, tokens=tokens, low=charge.low, high=high, unbounded=int(charge.high is None))
    return Spend(calls=1, tokens=tokens, unpriced=1)


def _open(call: CallRun) -> Spend:
    return Spend(calls=1, high=call.worst or _ZERO, unbounded=int(call.worst is None))


def _key(call: CallRun, outcome: str) -> SpendKey:
    return SpendKey(bare(call.path), call.model, call.label, call.at[:10], outcome)
