"""The paid call: the only spender. Look up, admit, record the start, send once, record the end, return."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from pipeline.engine.caching import CacheWatch
from pipeline.engine.desk import Desk
from pipeline.engine.entries import Ask, Entries, Scope, per_call
from pipeline.engine.limits import CoolDown
from pipeline.engine.pace import Pace
from pipeline.engine.retry import RetryPolicy, give_up, retrying
from pipeline.engine.reuse import tries_of
from pipeline.engine.sources import Values
from pipeline.errors import ModelError, ModelRejected, ModelTruncated, ModelUnavailable, Pause, SpendLimit
from pipeline.llm.base import WINDOW_FULL, Model, Reply, Request
from pipeline.records.run import CallRun


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one model on behalf of all scopes of a run."""

    model: Model
    entries: Entries
    values: Values
    cool_down: CoolDown
    pace: Pace
    policy: RetryPolicy
    cache: CacheWatch
    #: Where asks are gathered for a batch; None: each goes out by itself.
    desk: Desk | None = None

    def ask(self, scope: Scope, request: Request) -> Reply:
        """The reply to a request; a recorded one is free.

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
                return _judged(scope, request, self._recorded(scope, call))
        scope.heard += len(tries)
        self._check_cap(request)
        while True:
            cuts = [
                call.stop_reason
                for call in tries
                if call.ended and call.error is None and self._had_room(call, request)
            ]
            asked = self._longer(request, cuts) if cuts else request
            ask = Ask(scope, asked, key, n, len(tries) + 1)
            if self.desk is not None and self.desk.takes(ask, tries):
                self._leave_to(self.desk, ask, tries)
            reply = self._answer(ask, tries)
            scope.bought += 1
            scope.tell_answered()
            if not reply.truncated:
                return _judged(scope, request, reply)
            tries = self._tries(scope, request, n)

    def _had_room(self, call: CallRun, request: Request) -> bool:
        """Whether an answer that was cut off could be as long as is asked for now."""
        return not call.request or self.values.blob(call.request).get("max_tokens", 0) >= request.max_tokens

    def _longer(self, request: Request, cuts: Sequence[str | None]) -> Request:
        """The request with room for a longer answer, after answers that were cut off for these reasons.

        Raises:
            ModelTruncated: More room is of no use, or was given.
        """
        cap = self._higher(request.max_tokens)
        if WINDOW_FULL in cuts:
            raise ModelTruncated(
                "Prompt and answer together fill the model's context window.",
                hint="Shorten the prompt, or choose a model with a larger window.",
            )
        if cap <= request.max_tokens:
            raise ModelTruncated(
                f"The answer was cut off at {request.max_tokens} tokens, the most that this model gives.",
                hint="Ask for less in one call.",
            )
        if len(cuts) > 1:
            raise ModelTruncated(
                f"The answer was cut off at {request.max_tokens} tokens, and then cut off at {cap} tokens.",
                hint="Ask for less in one call, or raise max_tokens.",
            )
        return replace(request, max_tokens=cap)

    def _tries(self, scope: Scope, request: Request, n: int) -> list[CallRun]:
        with self.entries.recorder.reading() as state:
            return list(tries_of(state.memo.get(scope.slot(state), {}), request, n, self.values))

    def _recorded(self, scope: Scope, call: CallRun) -> Reply:
        scope.tell_answered()
        self.entries.emit("call_restored", path=scope.path, task=scope.task, label=call.label)
        return Reply.from_json(self.values.get(json.loads(call.reply or b"null")))

    def _check_cap(self, request: Request) -> None:
        """Refuse a token limit that the model is known not to take, before anything is sent.

        Raises:
            ModelRejected: Below 1, or above the model's own limit.
        """
        info = self.entries.info
        most = info.max_output_tokens if request.model in ("", info.id) else None
        cap: object = request.max_tokens
        whole = isinstance(cap, int) and not isinstance(cap, bool)
        if not whole or request.max_tokens < 1 or (most is not None and request.max_tokens > most):
            name = request.model or info.id
            limit = "a whole number from 1" + (f" to {most}" if most is not None else "")
            raise ModelRejected(
                f"max_tokens is {cap!r}; {name} takes {limit}. Nothing was sent.",
                hint=f"Give max_tokens as {limit}.", max_tokens=request.max_tokens, most=most,
            )  # fmt: skip

    def _higher(self, cap: int) -> int:
        return min(cap * 2, self.entries.info.max_output_tokens or cap * 2)

    def _answer(self, ask: Ask, tries: Sequence[CallRun]) -> Reply:
        """Send it until it is answered, as patiently as the policy says."""
        counter = count(ask.k)
        loop = retrying(self.policy, _failures(tries), self.cool_down, self.entries.stop, lambda: self.pace.answers)
        reply: Reply = loop(lambda: self._try(replace(ask, k=next(counter))))
        return reply

    def _try(self, ask: Ask) -> Reply:
        """One attempt that is in the ledger before it leaves; its end is recorded before anything else."""
        try:
            reply = self._sent(ask)
        except ModelError as error:
            raise self._hopeless(error) from error
        if self.entries.info.paid:
            self.cache.note(ask.request, reply.usage)
        if not (reply.complete or reply.refused or reply.truncated):
            raise ModelRejected(f"The model stopped for {reply.stop_reason!r}, which this program cannot continue.")
        return reply

    def _sent(self, ask: Ask) -> Reply:
        self.cool_down.wait()
        with self.pace.turn(ask.request) as turn:
            self.cool_down.wait()
            entry = self.entries.begin(ask)
            turn.reply = reply = per_call(self.model.complete, self.entries, entry, ask.request)
        return reply

    def _leave_to(self, desk: Desk, ask: Ask, tries: Sequence[CallRun]) -> None:
        """Have it answered by a batch.

        Raises:
            Suspended: Always, but where it was answered with an error that no other try can mend.
            ModelRejected: That error.
            Pause: It failed as often as the policy allows.
        """
        last = tries[-1] if tries else None
        if last is not None and last.error is not None:
            if not last.error.get("retryable"):
                raise ModelRejected(str(last.error.get("message", "")))
            with self.entries.recorder.reading() as state:
                owner = state.owner
            # However often it failed before, a resume tries once more.
            if last.seq > owner and _failures(tries) >= self.policy.tries:
                give_up(self.entries.stop, ModelUnavailable(str(last.error.get("message", ""))), self.policy.tries)
        desk.leave(ask, tries)

    def _hopeless(self, error: ModelError) -> BaseException:
        """The error, or a Pause where no other call can succeed either."""
        if isinstance(error, SpendLimit):
            self.entries.stop.request("paused_spend_limit", error)
            return Pause("paused_spend_limit", error)
        if error.data.get("stops_run"):
            self.entries.stop.request("failed", error)
            return Pause("failed", error)
        return error


def _judged(scope: Scope, request: Request, reply: Reply) -> Reply:
    """Return the reply without what wraps its JSON, once it is noted whether the schema allows that."""
    text = request.fitting(reply.text)
    if request.schema is not None:
        scope.unfit = text is None
    return reply if text is None or text == reply.text else replace(reply, text=text)


def _failures(tries: Sequence[CallRun]) -> int:
    """Tries since the last answer that ended in an error."""
    answered = [index for index, call in enumerate(tries) if call.ended and call.error is None]
    return sum(1 for call in tries[answered[-1] + 1 if answered else 0 :] if call.error is not None)
