"""Moves money between sums as calls start, end, settle or turn out wasted. Called by the fold only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from pipeline.records.charge import EXACT, INTERVAL, Charge, amount, bound
from pipeline.records.kinds import CHECK, CONTENT, CUT_OFF, REFUSAL, CallEnded, CallStarted, ChargeSettled, Gap
from pipeline.records.run import CallRun, RunState, Spend, SpendKey, bare, first_heard, slot_of

USED, WASTED, OPEN = "used", "wasted", "open"
#: Why a call was for nothing: an error, a refusal, an answer cut off, content that was rejected, work made void
#: later, or an answer that was never recorded.
FAILED, REFUSED, TRUNCATED, REJECTED, VOID, LOST = "failed", "refused", "truncated", "rejected", "void", "lost"
CAUSES = (FAILED, REFUSED, TRUNCATED, REJECTED, VOID, LOST)
#: Whose failure closes an attempt → why what it used is wasted, by its error. Journals of earlier code know no CHECK.
CLOSING: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    CHECK: lambda error: REJECTED,
    CONTENT: lambda error: REJECTED if error.get("type") == "TaskRejected" else FAILED,
}
_ZERO = Decimal(0)
#: How the file of an unfinished write is called; gaps of old say it only so.
_TORN = "journal.torn-"

#: (path, task, attempt).
Slot = tuple[str, str | None, int]


class Spending:
    """The part of the fold that counts money, over one RunState."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        #: What each call of an attempt was counted as used, so that the attempt can turn wasted as a whole.
        self._paid: dict[Slot, dict[int, tuple[SpendKey, Spend]]] = {}
        #: Calls whose charge was not exact when they ended, or that a person has settled: what they count as now.
        self._inexact: dict[int, tuple[Slot, SpendKey, Spend, bool]] = {}
        #: Why the attempts that were closed were for nothing.
        self._closed: dict[Slot, str] = {}
        #: Calls settled while they were open: a late end adds nothing.
        self._settled: set[int] = set()
        #: Calls whose reply code did not accept.
        self.rejected: set[int] = set()
        #: Where records are missing whose cost is unknown: the last of each place. And what heads knew of others.
        self._missing: list[int] = []
        self._known = Spend()
        self._known_seq = 0
        self._lost_key: SpendKey | None = None
        #: One key object per kind of sum; making and hashing them is what costs.
        self._keys: dict[tuple[str, ...], SpendKey] = {}

    def start(self, seq: int, at: str, owner: int, fact: CallStarted) -> CallRun:
        """Count an open call at its worst case; returns the try."""
        worst = bound(fact.worst)
        call = CallRun(
            seq, fact.k, fact.model, fact.label, worst, at, fact.path, fact.task, fact.attempt, fact.key, fact.n,
            batch=fact.batch, admitted=0 if fact.origin else owner, request=fact.request, provider=fact.provider,
            labels=self._state.labels,
        )  # fmt: skip
        self._state.open_calls[seq] = call
        self._fly(call, 1)
        self._put(self._key(call, OPEN), _open(call))
        return call

    def end(self, seq: int, at: str, fact: CallEnded) -> tuple[CallRun, CallRun] | None:
        """Replace the open amount by the charge; returns the try as it was and as it is.

        An end without its start (lost in a gap) counts its money under no step.
        """
        if fact.call in self._settled:
            return None
        call = self._state.open_calls.pop(fact.call, None)
        read = Charge.from_json(fact.charge)
        charge = counted(read)
        if call is None:
            self._put(SpendKey("", "", "", at[:10], WASTED, LOST), charge)
            return None
        self._fly(call, -1)
        self._take(self._key(call, OPEN), _open(call))
        self._found(call, charge)
        slot = slot_of(self._state, call.path, call.task, call.attempt)
        cause = waste_of(fact) or self._late(slot)
        if read.model:
            others = self._state.answered_by.get(call.model, frozenset())
            self._state.answered_by[call.model] = others | {read.model}
        key = self._key(call, WASTED if cause else USED, cause, read.model)
        self._put(key, charge)
        if not cause:
            self._paid.setdefault(slot, {})[call.seq] = (key, charge)
        if read.state != EXACT:
            self._inexact[call.seq] = (slot, key, charge, False)
        ended = CallRun(
            call.seq, call.k, call.model, call.label, call.worst, call.at, call.path, call.task, call.attempt,
            call.key, call.n, True, fact.usable, fact.reply, fact.error, fact.stop_reason, seq, call.batch,
            call.admitted, call.request, call.provider, call.labels,
        )  # fmt: skip
        return call, ended

    def _late(self, slot: Slot) -> str:
        """Return why a good reply is of no use: its attempt was closed before; "" if it was not."""
        if first_heard(self._state, slot[0], slot[1]) <= slot[2]:
            return ""
        # Said once: what closes the attempt again later does not change it.
        return self._closed.setdefault(slot, LOST)

    def cause(self, slot: Slot) -> str:
        """Return why what a closed attempt had used is wasted."""
        return self._closed.get(slot, LOST)

    def settle(self, fact: ChargeSettled) -> None:
        """Put a known amount in the place of an interval, an unpriced charge, an open call or an earlier amount."""
        call = self._state.open_calls.pop(fact.call, None)
        usd = amount(fact.usd)
        if call is not None:
            self._fly(call, -1)
            self._take(self._key(call, OPEN), _open(call))
            key, after = self._key(call, WASTED, LOST), Spend(calls=1, usd=usd)
            self._put(key, after)
            self._found(call, after)
            self._settled.add(fact.call)
            self._inexact[fact.call] = ((call.path, call.task, call.attempt), key, after, True)
            return
        found = self._inexact.get(fact.call)
        if found is None or (found[3] and not fact.corrects):
            return
        slot, key, before, _ = found
        after = Spend(calls=1, tokens=dict(before.tokens), usd=usd, kind_calls=dict(before.kind_calls))
        paid = self._paid.get(slot, {})
        if fact.call in paid:
            paid[fact.call] = (key, after)
        else:
            key = self._wasted(key, slot)
        self._take(key, before)
        self._put(key, after)
        self._inexact[fact.call] = (slot, key, after, True)

    def lose(self, seq: int, at: str, fact: Gap) -> None:
        """Count what missing records may have told of money: unknown, or what a head knew of it."""
        state = self._state
        torn = fact.kept.startswith(_TORN) if fact.torn is None else fact.torn
        if torn or state.identity.get("author") == "offline":
            return
        if fact.head:
            if fact.whole:
                self._missing = [last for last in self._missing if last > fact.head]
            low, high = bound(fact.low) or _ZERO, bound(fact.high) or _ZERO
            if low or high or fact.first <= fact.last:
                self._known.add(Spend(low=low, high=high, unbounded=1))
                self._known_seq = seq
        elif fact.first <= fact.last:
            self._missing.append(fact.last)
        self._tell_lost(at[:10])

    def _found(self, call: CallRun, charge: Spend) -> None:
        """Take the end of a call that was open when a head was compared: the head may have known it."""
        if self._known.low and call.seq < self._known_seq and self._lost_key is not None:
            self._known.low = max(self._known.low - charge.usd - charge.low, _ZERO)
            self._tell_lost(self._lost_key.day)

    def _tell_lost(self, day: str) -> None:
        state = self._state
        if self._lost_key is not None:
            self._take(self._lost_key, state.lost)
            self._lost_key = None
        known = self._known
        state.lost = Spend(low=known.low, high=known.high, unbounded=known.unbounded + len(self._missing))
        if state.lost.unbounded:
            self._lost_key = SpendKey("", "", "", day, OPEN)
            self._put(self._lost_key, state.lost)

    def waste(self, slot: Slot, cause: str = LOST, last: int = 0) -> None:
        """Turn what a vain attempt used into waste. The first cause stays.

        Args:
            last: The last attempt that heard the replies of this one; 0: none did.
        """
        for attempt in range(slot[2], max(slot[2], last) + 1):
            self._closed.setdefault((*slot[:2], attempt), cause)
        for key, used in self._paid.pop(slot, {}).values():
            self._take(key, used)
            self._put(self._wasted(key, slot), used)

    def reject(self, slot: Slot, calls: Iterable[int]) -> None:
        """Turn replies that code did not accept into waste; the rest of their attempt stands."""
        paid = self._paid.get(slot, {})
        for call in calls:
            if call not in paid:
                continue
            key, used = paid.pop(call)
            wasted = SpendKey(key.step, key.model, key.label, key.day, WASTED, REJECTED, key.provider, key.labels)
            self._take(key, used)
            self._put(wasted, used)
            self.rejected.add(call)
            if call in self._inexact:
                self._inexact[call] = (slot, wasted, used, self._inexact[call][3])

    def waste_before(self, slot: Slot) -> None:
        """Turn what earlier attempts of the same work used into waste too."""
        for other in [other for other in self._paid if other[:2] == slot[:2] and other[2] < slot[2]]:
            self.waste(other)

    def _fly(self, call: CallRun, sign: int) -> None:
        """Count a try that the present owner admitted as begun (1) or ended (-1).

        Only such a try has a reservation. Any other (an earlier owner's, one recorded late, one copied from a
        part) is spent at its worst case until its end is known.
        """
        state = self._state
        if call.admitted != state.owner:
            return
        if call.worst is None:
            state.flying_unbounded += sign
        else:
            state.flying += sign * call.worst

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

    def _key(self, call: CallRun, outcome: str, cause: str = "", answered: str = "") -> SpendKey:
        model = answered or call.model
        parts = (call.path, model, call.label, call.at[:10], outcome, cause, call.provider, call.labels)
        key = self._keys.get(parts)
        if key is None:
            key = self._keys[parts] = SpendKey(bare(call.path), *parts[1:])
        return key

    def _wasted(self, key: SpendKey, slot: Slot) -> SpendKey:
        if key.outcome == WASTED:
            return key
        cause = self.cause(slot)
        return SpendKey(key.step, key.model, key.label, key.day, WASTED, cause, key.provider, key.labels)


def waste_of(fact: CallEnded) -> str:
    """Return why an end is of no use (CAUSES); "" where it may be."""
    if fact.error is not None:
        return FAILED
    if fact.stop_reason == REFUSAL:
        return REFUSED
    if fact.usable:
        return ""
    return TRUNCATED if fact.stop_reason in CUT_OFF else FAILED


def counted(charge: Charge) -> Spend:
    """Return one call's charge as a sum. Never zero by silence: no price is counted as such."""
    tokens = dict(charge.tokens)
    kinds = {kind: 1 for kind, count in tokens.items() if count}
    if charge.state == EXACT:
        return Spend(1, tokens, dict(charge.parts), charge.low, kind_calls=kinds, saved_cache=charge.saved_by_cache,
                     saved_batch=charge.saved_by_batch)  # fmt: skip
    if charge.state == INTERVAL:
        low, high = charge.low, charge.high
        return Spend(1, tokens, {}, _ZERO, low, low if high is None else high, 0, int(high is None), kinds)
    return Spend(1, tokens, {}, unpriced=1, kind_calls=kinds)


def _open(call: CallRun) -> Spend:
    return Spend(1, {}, {}, _ZERO, _ZERO, call.worst or _ZERO, 0, int(call.worst is None))
