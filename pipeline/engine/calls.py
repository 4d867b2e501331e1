"""The paid call: the only spender. Look up, admit, record the start, send once, record the end, return."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from pipeline.clock import Clock
from pipeline.engine.events import Emitter
from pipeline.engine.limits import Ceiling, CoolDown
from pipeline.engine.recorder import Recorder
from pipeline.engine.retry import RetryPolicy, retrying
from pipeline.engine.sources import Values
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, ModelError, ModelRejected, ModelTruncated, Pause, SpendLimit
from pipeline.llm.base import Model, ModelInfo, Reply, Request
from pipeline.records.charge import FREE, UNPRICED, Charge
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.run import CallRun
from pipeline.records.values import encode_value


class Prices(Protocol):
    """What the spender must know of prices (cost.prices.PriceBook)."""

    def charge(self, usage: Any, *, model: str, at: Any, tier: str | None = None) -> Charge: ...
    def partial(self, usage: Any, *, model: str, at: Any, worst: Decimal | None) -> Charge: ...
    def worst(self, size_bytes: int, max_tokens: int, *, model: str, at: Any) -> Decimal | None: ...


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
    answered: threading.Event | None = None
    #: What stopped this body, once something did.
    paused: Pause | None = None

    def leave_if_paused(self) -> None:
        """A body that swallowed its pause has no end: what it made without an answer is nothing to keep.

        Raises:
            Pause: It was paused.
        """
        if self.paused is not None:
            raise self.paused


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one model on behalf of all scopes of a run."""

    model: Model
    info: ModelInfo
    prices: Prices
    recorder: Recorder
    values: Values
    clock: Clock
    emit: Emitter
    stop: Stop
    ceiling: Ceiling
    cool_down: CoolDown
    slots: threading.BoundedSemaphore
    policy: RetryPolicy

    def ask(self, scope: Scope, request: Request) -> Reply:
        """The reply to a request; a recorded one is free.

        A truncation is asked once more with twice the cap; a refusal is returned as such.

        Raises:
            Pause: Budget, limits, billing or interrupt; nothing is lost.
            ModelRejected: The provider does not take this request.
            ModelTruncated: Cut off twice.
        """
        key = request.hash()
        n = scope.counts[key] = scope.counts.get(key, 0) + 1
        with self.recorder.reading() as state:
            slot = state.memo.get((scope.path, scope.task, scope.attempt), {}).get((key, n), [])
            tries = list(slot)
        for call in tries:
            if call.usable:
                return self._recorded(scope, call)
        cut = sum(1 for call in tries if call.ended and call.error is None)
        failures = sum(1 for call in tries if call.error is not None)
        k = len(tries)
        while cut < 2:
            asked = request if cut == 0 else replace(request, max_tokens=self._higher(request.max_tokens))
            counter = iter(range(k + 1, k + 1000))
            loop = retrying(self.policy, failures, self.cool_down, self.stop)
            reply: Reply = loop(lambda asked=asked, counter=counter: self._try(scope, asked, key, n, next(counter)))
            k = next(counter) - 1
            _tell_answered(scope)
            if not reply.truncated:
                return reply
            cut, failures = cut + 1, 0
        raise ModelTruncated(
            f"The answer was cut off at {self._higher(request.max_tokens)} tokens, twice.",
            hint="Ask for less in one call, or raise max_tokens.",
        )

    def _recorded(self, scope: Scope, call: CallRun) -> Reply:
        _tell_answered(scope)
        self.emit("call_restored", path=scope.path, task=scope.task, label=call.label)
        return Reply.from_json(self.values.get(json.loads(call.reply or b"null")))

    def _higher(self, cap: int) -> int:
        return min(cap * 2, self.info.max_output_tokens or cap * 2)

    def _try(self, scope: Scope, request: Request, key: str, n: int, k: int) -> Reply:
        """One attempt that is in the ledger before it leaves; its end is recorded before anything else."""
        body = encode_value(request.to_json(), "request")
        with self.slots:
            self.cool_down.wait()
            blob = self.recorder.put_blob(body)
            at = self.clock.now()
            worst = FREE.high
            if self.info.paid:
                worst = self.prices.worst(request.size(), request.max_tokens, model=request.model, at=at)
            started = CallStarted(
                scope.path, key, request.model, blob, n=n, k=k, task=scope.task, attempt=scope.attempt,
                label=request.label, worst=None if worst is None else str(worst),
            )  # fmt: skip
            call = self.ceiling.enter(worst, lambda: self.recorder.append(started))
            self.emit("call_started", path=scope.path, task=scope.task, label=request.label, call=call)
            return self._send(scope, request, call, worst)

    def _send(self, scope: Scope, request: Request, call: int, worst: Decimal | None) -> Reply:
        at = self.clock.now()
        try:
            reply = self.model.complete(request)
        except ModelError as error:
            charge = self._error_charge(error, request, worst, at)
            partial = error.reply.to_json() if isinstance(error.reply, Reply) else None
            self._end(scope, request, call, charge, partial, _error_facts(error))
            raise self._hopeless(error) from error
        except Exception as error:
            # A fault of the adapter: nobody knows whether the request left.
            lost = ModelError(f"{type(error).__name__}: {error}", billed="unknown")
            self._end(scope, request, call, self._error_charge(lost, request, worst, at), None, _error_facts(lost))
            raise
        charge = self._charge(reply, request, at)
        usable = reply.complete or reply.refused
        self._end(scope, request, call, charge, reply.to_json(), None, reply, usable)
        if worst is not None and charge.low > worst:
            self.stop.request("paused_budget", _above_worst(charge.low, worst, call))
        if not usable and not reply.truncated:
            raise ModelRejected(f"The model stopped for {reply.stop_reason!r}, which this program cannot continue.")
        return reply

    def _end(
        self,
        scope: Scope,
        request: Request,
        call: int,
        charge: Charge,
        reply: dict[str, Any] | None,
        error: dict[str, Any] | None,
        received: Reply | None = None,
        usable: bool = False,
    ) -> None:
        stored = None if reply is None else self.recorder.fit_reply(reply)
        ended = CallEnded(
            call, stored, charge.to_json(), usable=usable,
            stop_reason=_text(received.stop_reason) if received else None, error=error,
            request_id=_text(received.request_id if received else (error or {}).get("request_id")),
        )  # fmt: skip
        self.recorder.append(ended)
        self.emit(
            "call_ended", path=scope.path, task=scope.task, label=request.label, call=call,
            usd=str(charge.low), usd_high=None if charge.high is None else str(charge.high), state=charge.state,
            tokens=dict(charge.tokens), error=error and error["message"],
        )  # fmt: skip

    def _charge(self, reply: Reply, request: Request, at: Any) -> Charge:
        if not self.info.paid:
            return FREE
        try:
            return self.prices.charge(reply.usage, model=request.model, at=at)
        except Exception as error:
            return Charge(UNPRICED, high=None, note=f"{type(error).__name__}: {error}")

    def _error_charge(self, error: ModelError, request: Request, worst: Decimal | None, at: Any) -> Charge:
        if error.billed == "no" or not self.info.paid:
            return FREE
        try:
            usage = error.reply.usage if isinstance(error.reply, Reply) else {}
            return self.prices.partial(usage, model=request.model, at=at, worst=worst)
        except Exception as caught:
            return Charge("interval", high=worst, note=f"{type(caught).__name__}: {caught}")

    def _hopeless(self, error: ModelError) -> BaseException:
        """The error, or a Pause where no other call can succeed either."""
        if isinstance(error, SpendLimit):
            self.stop.request("paused_spend_limit", error)
            return Pause("paused_spend_limit", error)
        if error.data.get("stops_run"):
            self.stop.request("failed", error)
            return Pause("failed", error)
        return error


def _text(value: Any) -> str | None:
    """What a provider says in the place of a text, as one."""
    return value if value is None or isinstance(value, str) else str(value)


def _tell_answered(scope: Scope) -> None:
    if scope.answered is not None:
        scope.answered.set()


def _error_facts(error: ModelError) -> dict[str, Any]:
    facts = {"type": type(error).__name__, "message": error.message, "retryable": error.retryable}
    return facts | {key: error.data[key] for key in ("status", "code", "request_id") if error.data.get(key) is not None}


def _above_worst(low: Decimal, worst: Decimal, call: int) -> BudgetExceeded:
    return BudgetExceeded(
        f"Call {call} was charged ${low:.4f}, above its worst case of ${worst:.4f}; the run was stopped.",
        hint="Compare with the provider's bill before resuming; please report it.",
    )
