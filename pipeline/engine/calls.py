"""The paid call: look up the record, admit under the ceiling, record the start, send once, record the end, return.

Every try is recorded before it leaves, and how it ended before anything else happens. Between a reply and its record
nothing may raise: a price that cannot be found makes the charge unpriced.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any, NoReturn

from pipeline.clock import Clock
from pipeline.engine.ceiling import Ceiling, Prices, Room
from pipeline.engine.events import Emitter
from pipeline.engine.pace import Pace
from pipeline.engine.recorder import Recorder
from pipeline.engine.retry import CoolDown, RetryPolicy, give_up, retrying
from pipeline.engine.sources import Scope, Values, tries_of
from pipeline.engine.stop import Stop
from pipeline.engine.watches import CacheWatch
from pipeline.errors import (
    BudgetExceeded,
    ModelError,
    ModelRejected,
    ModelTruncated,
    ModelUnavailable,
    SpendLimit,
)
from pipeline.llm.base import Model, ModelInfo, Reply, Request
from pipeline.providers import ANTHROPIC
from pipeline.records.charge import FREE, INTERVAL, UNPRICED, Charge, dollars
from pipeline.records.kinds import WINDOW_FULL, CallEnded, CallStarted
from pipeline.records.redaction import without_keys
from pipeline.records.run import CallRun
from pipeline.records.values import encode_value

BATCH = "batch"
#: What a counted request may grow by, as a part of it and in tokens: the count is the provider's own estimate.
_MARGIN, _MARGIN_TOKENS = 1.05, 16


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
class OpenCall:
    """A try that is in the ledger and has no end yet."""

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


class Gathering:
    """Where asks are gathered for a batch; this one gathers none."""

    def takes(self, ask: Ask, tries: Sequence[CallRun]) -> bool:
        """Return whether this try is for a batch, or waits for one."""
        return False

    def leave(self, ask: Ask, tries: Sequence[CallRun]) -> NoReturn:
        """Leave a request here, unless a batch already holds it.

        Raises:
            Suspended: Always; the body runs again once it is answered.
        """
        raise NotImplementedError

    def expect(self, active: int) -> None:
        """Take note of how many visits run now."""

    def settle(self) -> None:
        """Wait until what was left here has been answered, or may be asked by itself.

        Raises:
            Pause: The run is stopping, the ceiling has no room, or the batch is left at the provider.
        """


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one model on behalf of all scopes of a run."""

    model: Model
    ledger: CallLedger
    values: Values
    cool_down: CoolDown
    pace: Pace
    policy: RetryPolicy
    cache: CacheWatch
    batches: Gathering

    def ask(self, scope: Scope, request: Request) -> Reply:
        """Return the reply to a request; a recorded one is free.

        An answer cut off at max_tokens is asked once more with twice the cap; a refusal is returned as such.

        Raises:
            Pause: Budget, limits, billing or interrupt; nothing is lost.
            Suspended: The answer comes with a batch; the body is run again then.
            ModelRejected: The provider does not take this request.
            ModelTruncated: Cut off, and more room is of no use.
        """
        key = request.hash()
        n = scope.counts[key] = scope.counts.get(key, 0) + 1
        tries = self._tries(scope, request, n)
        for call in tries:
            if call.usable:
                scope.heard += 1
                scope.tell_answered()
                self.ledger.emit("call_restored", path=scope.path, task=scope.task, label=call.label)
                return _judged(scope, request, Reply.from_json(self.values.get(json.loads(call.reply or b"null"))))
        scope.heard += len(tries)
        self._check_cap(request)
        while True:
            cuts = [call.stop_reason for call in tries if _answered(call) and self._had_room(call, request)]
            ask = Ask(scope, self._longer(request, cuts) if cuts else request, key, n, len(tries) + 1)
            if self.batches.takes(ask, tries):
                self._leave_to_batch(ask, tries)
            reply = self._answer(ask, tries)
            scope.bought += 1
            scope.tell_answered()
            if not reply.truncated:
                return _judged(scope, request, reply)
            tries = self._tries(scope, request, n)

    def _tries(self, scope: Scope, request: Request, n: int) -> list[CallRun]:
        with self.ledger.recorder.reading() as state:
            return list(tries_of(state.memo.get(scope.slot(state), {}), request, n, self.values))

    def _answer(self, ask: Ask, tries: Sequence[CallRun]) -> Reply:
        """Send it until it is answered, as patiently as the policy says."""
        numbers = count(ask.k)
        loop = retrying(self.policy, _failures(tries), self.cool_down, self.ledger.stop, lambda: self.pace.answers)
        reply: Reply = loop(lambda: self._try(replace(ask, k=next(numbers))))
        return reply

    def _try(self, ask: Ask) -> Reply:
        """Make one attempt that is in the ledger before it leaves; its end is recorded before anything else."""
        ledger = self.ledger
        try:
            self.cool_down.wait()
            with self.pace.turn(ask.request) as turn:
                self.cool_down.wait()
                turn.reply = reply = ledger.send(self.model.complete, ledger.begin(ask), ask.request)
        except ModelError as error:
            stop_if_hopeless(ledger.stop, error)
            raise
        if ledger.info.paid:
            self.cache.note(ask.request, reply.usage)
        if not (reply.complete or reply.refused or reply.truncated):
            raise ModelRejected(
                f"The model stopped for {reply.stop_reason!r}, which this program cannot continue.",
                code="unknown_stop_reason",
            )
        return reply

    def _leave_to_batch(self, ask: Ask, tries: Sequence[CallRun]) -> None:
        """Have it answered by a batch."""
        last = tries[-1] if tries else None
        if last is not None and last.error is not None:
            message = str(last.error.get("message", ""))
            if not last.error.get("retryable"):
                raise ModelRejected(message, code=str(last.error.get("code") or ""))
            with self.ledger.recorder.reading() as state:
                owner = state.owner
            # However often it failed before, a resume tries once more.
            if last.seq > owner and _failures(tries) >= self.policy.tries:
                give_up(self.ledger.stop, ModelUnavailable(message), self.policy.tries)
        self.batches.leave(ask, tries)

    def _had_room(self, call: CallRun, request: Request) -> bool:
        """Return whether an answer that was cut off could be as long as is asked for now."""
        return not call.request or self.values.blob(call.request).get("max_tokens", 0) >= request.max_tokens

    def _longer(self, request: Request, cuts: Sequence[str | None]) -> Request:
        """Return the request with room for a longer answer, after answers that were cut off for these reasons."""
        cap = min(request.max_tokens * 2, self.ledger.info.max_output_tokens or request.max_tokens * 2)
        if WINDOW_FULL in cuts:
            raise ModelTruncated(
                "Prompt and answer together fill the model's context window.", code="context_window_full",
                hint="Shorten the prompt, or choose a model with a larger window.",
            )  # fmt: skip
        cut = f"The answer was cut off at {request.max_tokens} tokens"
        if cap <= request.max_tokens:
            raise ModelTruncated(f"{cut}, the most that this model gives.", hint="Ask for less in one call.")
        if len(cuts) > 1:
            raise ModelTruncated(
                f"{cut}, and then cut off at {cap} tokens.", hint="Ask for less in one call, or raise max_tokens."
            )
        return replace(request, max_tokens=cap)

    def _check_cap(self, request: Request) -> None:
        """Refuse a token limit that the model is known not to take, before anything is sent."""
        info = self.ledger.info
        most = info.max_output_tokens if request.model in ("", info.id) else None
        cap: object = request.max_tokens
        whole = isinstance(cap, int) and not isinstance(cap, bool)
        if not whole or request.max_tokens < 1 or (most is not None and request.max_tokens > most):
            limit = "a whole number from 1" + (f" to {most}" if most is not None else "")
            raise ModelRejected(
                f"max_tokens is {cap!r}; {request.model or info.id} takes {limit}. Nothing was sent.",
                code="invalid_max_tokens", hint=f"Give max_tokens as {limit}.", max_tokens=cap, most=most,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallLedger:
    """Records the start and the end of every try of one run."""

    info: ModelInfo
    prices: Prices
    recorder: Recorder
    clock: Clock
    emit: Emitter
    stop: Stop
    ceiling: Ceiling
    #: Counts a request's tokens for its worst case (--budget estimate); None, or where it gives None: its bytes do.
    count: Callable[[Request], int | None] | None = None

    def begin(self, ask: Ask) -> OpenCall:
        """Admit a try and record its start, durable on return; waits where only calls in flight block it.

        Raises:
            Pause: It would pass the ceiling, or the run is stopping.
        """
        worst, started = self._start(ask, "")
        call, room = self.ceiling.enter(worst, lambda: self.recorder.append(started))
        return self._begun(ask, call, room, None)

    def begin_in_batch(self, ask: Ask, nonce: str) -> OpenCall | None:
        """Begin a request of the batch `nonce` as `begin` does: None where the ceiling has no room for it now.

        Its start is durable with the next synced record.
        """
        worst, started = self._start(ask, nonce)
        found = self.ceiling.enter_if_room(worst, lambda: self.recorder.append(started, sync=False))
        return None if found is None else self._begun(ask, *found, BATCH)

    def send(self, complete: Callable[[Request], Reply], call: OpenCall, request: Request) -> Reply:
        """Send one try and record its end, whatever it is.

        Raises:
            ModelError: As the model raised it, after its record.
        """
        try:
            reply = complete(request)
        except ModelError as error:
            self.failed(call, error)
            raise
        except Exception as error:
            # A fault of the adapter: the request may have left.
            said = without_keys(f"{type(error).__name__}: {error}")
            self.failed(call, ModelError(said, code="adapter_failed", billed="unknown"))
            raise
        if not (isinstance(reply, Reply) and isinstance(reply.text, str)):
            of = f"Reply of {type(reply.text).__name__}" if isinstance(reply, Reply) else type(reply).__name__
            wrong = ModelRejected(
                f"The model's complete() returned a {of}; it returns a Reply with a text.", code="reply_expected",
                hint='Write return Reply(text, "end_turn", usage={…}).', billed="unknown", stops_run=True,
            )  # fmt: skip
            self.failed(call, wrong)
            raise wrong
        self.replied(call, reply)
        return reply

    def replied(self, call: OpenCall, reply: Reply, *, sync: bool = True) -> None:
        charge = self._charge(call, reply)
        self._end(call, charge, reply.to_json(), None, reply, sync=sync)
        if call.worst is not None and charge.low > call.worst:
            self.stop.request("paused_budget", BudgetExceeded(
                f"Call {call.call} was charged {dollars(charge.low, 4)}, above its worst case of "
                f"{dollars(call.worst, 4)}; the run was stopped.",
                code="above_worst_case", hint="Compare with the provider's bill before resuming; please report it.",
            ))  # fmt: skip

    def failed(self, call: OpenCall, error: ModelError, *, sync: bool = True) -> None:
        """Record an error, with what it may have cost and what had come by then."""
        partial = error.reply.to_json() if isinstance(error.reply, Reply) else None
        facts = {
            "type": type(error).__name__, "code": error.code, "message": error.message, "retryable": error.retryable,
        }  # fmt: skip
        more = ("status", "provider_code", "request_id")
        facts |= {key: error.data[key] for key in more if error.data.get(key) is not None}
        self._end(call, self._error_charge(call, error), partial, facts, None, sync=sync)

    def worst(self, request: Request, *, batch: bool) -> Decimal | None:
        """Return the most a request may cost, in USD; None: it has no price."""
        if not self.info.paid:
            return FREE.high
        with self.recorder.reading() as state:
            instead = state.answered_by.get(request.model, frozenset())
        size, added, marked = request.size(), request.added(), request.marked()
        # A model that answers in the place of another counts otherwise.
        if self.count is not None and not instead and (tokens := self.count(request)) is not None:
            # As the provider counts it, with all that it adds; the bytes are still a bound where that is less.
            counted = math.ceil(tokens * _MARGIN) + _MARGIN_TOKENS
            if counted < size + added:
                size, added, marked = counted, 0, marked and marked + added
        return self.prices.worst(
            size, request.max_tokens, model=request.model, at=self.clock.now(), batch=batch, instead=instead,
            added=added, marked=marked, provider=self.info.provider,
        )  # fmt: skip

    def _start(self, ask: Ask, nonce: str) -> tuple[Decimal | None, CallStarted]:
        request, scope = ask.request, ask.scope
        blob = self.recorder.put_blob(encode_value(request.to_json(), "request"))
        worst = self.worst(request, batch=bool(nonce))
        return worst, CallStarted(
            scope.path, ask.key, request.model, blob, n=ask.n, k=ask.k, task=scope.task, attempt=scope.attempt,
            label=request.label, worst=None if worst is None else str(worst), batch=nonce,
            provider="" if self.info.provider == ANTHROPIC else self.info.provider,
        )  # fmt: skip

    def _begun(self, ask: Ask, call: int, room: Room, tier: str | None) -> OpenCall:
        path, task, request, now = ask.scope.path, ask.scope.task, ask.request, self.clock.now()
        self.emit("call_started", path=path, task=task, label=request.label, call=call)
        return OpenCall(call, path, task, request.label, request.model, room.worst, now, tier, room)

    def _end(
        self,
        call: OpenCall,
        charge: Charge,
        reply: Mapping[str, Any] | None,
        error: dict[str, Any] | None,
        received: Reply | None,
        *,
        sync: bool,
    ) -> None:
        usable = received is not None and (received.complete or received.refused)

        def ended(text: bytes | None) -> CallEnded:
            return CallEnded(
                call.call, text, charge.to_json(), usable=usable,
                stop_reason=_text(received.stop_reason) if received else None, error=error,
                request_id=_text(received.request_id if received else (error or {}).get("request_id")),
            )  # fmt: skip

        if charge.model:
            with self.recorder.reading() as state:
                known = charge.model in state.answered_by.get(call.model, ())
            if not known:
                self.emit.note(f"{charge.model} answered in place of {call.model}; its price applies.")
        text = None if reply is None else self.recorder.fit_reply(dict(reply), ended)
        self.recorder.append(ended(text), sync=sync)
        if call.room is not None:
            self.ceiling.leave(call.room, charge.high)
        tell_ended(self.emit, call, call.call, charge, error)

    def _charge(self, call: OpenCall, reply: Reply) -> Charge:
        if not self.info.paid:
            return FREE
        try:
            charge = self.prices.charge(
                reply.usage, model=call.model, at=call.at, tier=call.tier, answered=_text(reply.model) or "",
                provider=self.info.provider,
            )  # fmt: skip
        except Exception as error:
            return Charge(UNPRICED, high=None, note=f"{type(error).__name__}: {error}")
        if charge.state == UNPRICED and not charge.tokens and call.worst is not None:
            # Its price is known, its tokens are not: no more than its worst case.
            return replace(charge, state=INTERVAL, high=call.worst)
        return charge

    def _error_charge(self, call: OpenCall, error: ModelError) -> Charge:
        if error.billed == "no" or not self.info.paid:
            return FREE
        try:
            seen = error.reply if isinstance(error.reply, Reply) else Reply("", None)
            return self.prices.partial(
                seen.usage, model=call.model, at=call.at, worst=call.worst, answered=_text(seen.model) or "",
                provider=self.info.provider,
            )  # fmt: skip
        except Exception as caught:
            return Charge(INTERVAL, high=call.worst, note=f"{type(caught).__name__}: {caught}")


def tell_ended(
    emit: Emitter, of: OpenCall | CallRun, call: int, charge: Charge, error: Mapping[str, Any] | None
) -> None:
    """Emit call_ended: the recorded end of a call and what it cost."""
    emit(
        "call_ended", path=of.path, task=of.task, label=of.label, call=call, usd=str(charge.low),
        usd_high=None if charge.high is None else str(charge.high), state=charge.state, tokens=dict(charge.tokens),
        error=error and error.get("message"),
    )  # fmt: skip


def stop_if_hopeless(stop: Stop, error: ModelError) -> None:
    """Stop the run where no other request can succeed either.

    Raises:
        Pause: So it is.
    """
    if isinstance(error, SpendLimit):
        stop.pause("paused_spend_limit", error)
    if error.data.get("stops_run"):
        stop.pause("failed", error)


def _text(value: Any) -> str | None:
    """Return what a provider gives in the place of a text, as one."""
    return value if value is None or isinstance(value, str) else str(value)


def _judged(scope: Scope, request: Request, reply: Reply) -> Reply:
    """Return the reply without what wraps its JSON, and note whether the schema allows that."""
    text = request.fitting(reply.text)
    if request.schema is not None:
        scope.unfit = text is None
    return reply if text is None or text == reply.text else replace(reply, text=text)


def _answered(call: CallRun) -> bool:
    return bool(call.ended) and call.error is None


def _failures(tries: Sequence[CallRun]) -> int:
    """Return how many tries since the last answer ended in an error."""
    answered = [index for index, call in enumerate(tries) if _answered(call)]
    return sum(1 for call in tries[answered[-1] + 1 if answered else 0 :] if call.error is not None)
