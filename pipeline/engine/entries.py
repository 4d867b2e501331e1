"""The ledger's entries: every try is recorded before it leaves, and how it ended before anything else happens.

Between a reply and its record nothing may raise: a price that cannot be found makes the charge unpriced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn, Protocol

from pipeline.clock import Clock
from pipeline.engine.events import Emitter
from pipeline.engine.limits import Ceiling, Room
from pipeline.engine.recorder import Recorder
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, ModelError, Pause
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.records.charge import FREE, INTERVAL, UNPRICED, Charge, dollars
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.run import RunState, slot_of
from pipeline.records.values import encode_value

BATCH = "batch"
#: What a counted request may grow by, as a part of it and in tokens: the count is the provider's own estimate.
_MARGIN, _MARGIN_TOKENS = 1.05, 16


class Prices(Protocol):
    """What the spender must know of prices (cost.prices.PriceBook)."""

    def charge(self, usage: Any, *, model: str, at: Any, tier: str | None = None, answered: str = "") -> Charge: ...
    def partial(self, usage: Any, *, model: str, at: Any, worst: Decimal | None, answered: str = "") -> Charge: ...
    def worst(
        self,
        size_bytes: int,
        max_tokens: int,
        *,
        model: str,
        at: Any,
        batch: bool = False,
        instead: Iterable[str] = (),
        added: int = 0,
        marked: int | None = None,
    ) -> Decimal | None: ...


@dataclass(slots=True)
class Scope:
    """Whose calls: a step visit or a task in it, and its attempt."""

    path: str
    task: str | None
    attempt: int
    #: Equal asks so far in this attempt, by request hash.
    counts: dict[str, int] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    #: Names of the tasks begun in this go at the body; each may stand once.
    used: set[str] = field(default_factory=set)
    #: Set once a reply of this scope is recorded (used to warm a shared prompt prefix).
    answered: Any = None
    #: How many recorded replies this go at the body heard, and how many answers it bought.
    heard: int = 0
    bought: int = 0
    #: The last reply under a schema is nothing that the schema allows.
    unfit: bool = False
    #: What stopped this body, once something did.
    paused: Pause | None = None
    #: Equal queries to the user's memory so far, and what was written to it.
    queries: dict[str, int] = field(default_factory=dict)
    writes: list[dict[str, Any]] = field(default_factory=list)

    def slot(self, state: RunState) -> tuple[str, str | None, int]:
        """Where the replies that it hears are kept."""
        return slot_of(state, self.path, self.task, self.attempt)

    def leave_if_paused(self) -> None:
        """A body that swallowed its pause has no end: what it made without an answer is nothing to keep.

        Raises:
            Pause: It was paused.
        """
        if self.paused is not None:
            raise self.paused

    def tell_answered(self) -> None:
        """Whoever waits for the first reply of this scope need wait no longer."""
        if self.answered is not None:
            self.answered.set()


@dataclass(frozen=True, slots=True)
class Ask:
    """One try of one request, before it is sent."""

    scope: Scope
    request: Request
    #: Request hash, which of equal asks of the attempt (n), and which try of it (k).
    key: str
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A try that stands in the ledger and has no end yet."""

    #: seq of its call_started.
    call: int
    path: str
    task: str | None
    label: str
    model: str
    #: None: it has no price.
    worst: Decimal | None
    #: When it was sent; decides its price.
    at: datetime
    #: "batch" where it went out in one.
    tier: str | None = None
    #: What it was admitted to; None: another owner admitted it.
    room: Room | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """Writes the start and the end of every try of one run."""

    info: ModelInfo
    prices: Prices
    recorder: Recorder
    clock: Clock
    emit: Emitter
    stop: Stop
    ceiling: Ceiling
    #: Counts a request's tokens for its worst case (--budget estimate); None, or where it gives None: its bytes do.
    count: Callable[[Request], int | None] | None = None

    def begin(self, ask: Ask) -> Entry:
        """Admit a try and record its start, durable on return; waits where only calls in flight block it.

        Raises:
            Pause: It would pass the ceiling, or the run is stopping.
        """
        worst, started = self._start(ask, "")
        call, room = self.ceiling.enter(worst, lambda: self.recorder.append(started))
        return self._begun(ask, call, room, None)

    def begin_in_batch(self, ask: Ask, nonce: str) -> Entry | None:
        """As `begin`, for a request of the batch `nonce`: None where the ceiling has no room for it now.

        Its start is durable with the next synced record.
        """
        worst, started = self._start(ask, nonce)
        found = self.ceiling.enter_if_room(worst, lambda: self.recorder.append(started, sync=False))
        return None if found is None else self._begun(ask, *found, BATCH)

    def refuse(self, ask: Ask) -> NoReturn:
        """Stop the run: there is no room for this try, and nothing is out that could leave some.

        Raises:
            Pause: Always.
        """
        self.ceiling.refuse(self._worst(ask, batch=True))

    def _worst(self, ask: Ask, *, batch: bool) -> Decimal | None:
        if not self.info.paid:
            return FREE.high
        request = ask.request
        with self.recorder.reading() as state:
            instead = state.answered_by.get(request.model, frozenset())
        size, added, marked = request.size(), request.added(), request.marked()
        # A model that answers in the place of another counts otherwise.
        if self.count is not None and not instead and (count := self.count(request)) is not None:
            # As the provider counts it, with all that it adds; the bytes are still a bound where that is less.
            counted = math.ceil(count * _MARGIN) + _MARGIN_TOKENS
            if counted < size + added:
                size, added, marked = counted, 0, marked and marked + added
        return self.prices.worst(
            size, request.max_tokens, model=request.model, at=self.clock.now(), batch=batch, instead=instead,
            added=added, marked=marked,
        )  # fmt: skip

    def _start(self, ask: Ask, nonce: str) -> tuple[Decimal | None, CallStarted]:
        request, scope = ask.request, ask.scope
        blob = self.recorder.put_blob(encode_value(request.to_json(), "request"))
        worst = self._worst(ask, batch=bool(nonce))
        return worst, CallStarted(
            scope.path, ask.key, request.model, blob, n=ask.n, k=ask.k, task=scope.task, attempt=scope.attempt,
            label=request.label, worst=None if worst is None else str(worst), batch=nonce,
        )  # fmt: skip

    def _begun(self, ask: Ask, call: int, room: Room, tier: str | None) -> Entry:
        scope, request = ask.scope, ask.request
        self.emit("call_started", path=scope.path, task=scope.task, label=request.label, call=call)
        return Entry(
            call, scope.path, scope.task, request.label, request.model, room.worst, self.clock.now(), tier, room
        )

    def replied(self, entry: Entry, reply: Reply, *, sync: bool = True) -> None:
        """Record a reply with its charge."""
        charge = self._charge(entry, reply)
        usable = reply.complete or reply.refused
        self._end(entry, charge, reply.to_json(), None, reply, usable, sync=sync)
        if entry.worst is not None and charge.low > entry.worst:
            self.stop.request("paused_budget", _above_worst(charge.low, entry.worst, entry.call))

    def failed(self, entry: Entry, error: ModelError, *, sync: bool = True) -> None:
        """Record an error, with what it may have cost and what had come by then."""
        partial = error.reply.to_json() if isinstance(error.reply, Reply) else None
        self._end(entry, self._error_charge(entry, error), partial, _error_facts(error), sync=sync)

    def _end(
        self,
        entry: Entry,
        charge: Charge,
        reply: Mapping[str, Any] | None,
        error: dict[str, Any] | None,
        received: Reply | None = None,
        usable: bool = False,
        *,
        sync: bool,
    ) -> None:
        def ended(text: bytes | None) -> CallEnded:
            return CallEnded(
                entry.call, text, charge.to_json(), usable=usable,
                stop_reason=_text(received.stop_reason) if received else None, error=error,
                request_id=_text(received.request_id if received else (error or {}).get("request_id")),
            )  # fmt: skip

        self._tell_other(entry.model, charge.model)
        text = None if reply is None else self.recorder.fit_reply(dict(reply), ended)
        self.recorder.append(ended(text), sync=sync)
        if entry.room is not None:
            self.ceiling.leave(entry.room, charge.high)
        self.emit(
            "call_ended", path=entry.path, task=entry.task, label=entry.label, call=entry.call,
            usd=str(charge.low), usd_high=None if charge.high is None else str(charge.high), state=charge.state,
            tokens=dict(charge.tokens), error=error and error["message"],
        )  # fmt: skip

    def _tell_other(self, asked: str, answered: str) -> None:
        """Say once that another model answers than was asked."""
        if not answered:
            return
        with self.recorder.reading() as state:
            known = answered in state.answered_by.get(asked, ())
        if not known:
            self.emit("note", text=f"{answered} answered in the place of {asked}; its price counts.")

    def _charge(self, entry: Entry, reply: Reply) -> Charge:
        if not self.info.paid:
            return FREE
        try:
            charge = self.prices.charge(
                reply.usage, model=entry.model, at=entry.at, tier=entry.tier, answered=_text(reply.model) or ""
            )
        except Exception as error:
            return Charge(UNPRICED, high=None, note=f"{type(error).__name__}: {error}")
        if charge.state == UNPRICED and not charge.tokens and entry.worst is not None:
            # Its price is known, its tokens are not: no more than its worst case.
            return replace(charge, state=INTERVAL, high=entry.worst)
        return charge

    def _error_charge(self, entry: Entry, error: ModelError) -> Charge:
        if error.billed == "no" or not self.info.paid:
            return FREE
        try:
            seen = error.reply if isinstance(error.reply, Reply) else Reply("", None)
            return self.prices.partial(
                seen.usage, model=entry.model, at=entry.at, worst=entry.worst, answered=_text(seen.model) or ""
            )
        except Exception as caught:
            return Charge("interval", high=entry.worst, note=f"{type(caught).__name__}: {caught}")


def per_call(send: Callable[[Request], Reply], entries: Entries, entry: Entry, request: Request) -> Reply:
    """Send one try and record its end, whatever it is.

    Raises:
        ModelError: As the model raised it, after its record.
    """
    try:
        reply = send(request)
    except ModelError as error:
        entries.failed(entry, error)
        raise
    except Exception as error:
        # A fault of the adapter: nobody knows whether the request left.
        entries.failed(entry, ModelError(f"{type(error).__name__}: {error}", billed="unknown"))
        raise
    entries.replied(entry, reply)
    return reply


def _text(value: Any) -> str | None:
    """What a provider says in the place of a text, as one."""
    return value if value is None or isinstance(value, str) else str(value)


def _error_facts(error: ModelError) -> dict[str, Any]:
    facts = {
        "type": type(error).__name__, "code": error.code, "message": error.message, "retryable": error.retryable,
    }  # fmt: skip
    more = ("status", "provider_code", "request_id")
    return facts | {key: error.data[key] for key in more if error.data.get(key) is not None}


def _above_worst(low: Decimal, worst: Decimal, call: int) -> BudgetExceeded:
    return BudgetExceeded(
        f"Call {call} was charged {dollars(low, 4)}, above its worst case of {dollars(worst, 4)}; the run was stopped.",
        hint="Compare with the provider's bill before resuming; please report it.",
    )
