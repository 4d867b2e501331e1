"""When a try is repeated and how long it waits; the only retry layer above a model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from tenacity import RetryCallState, Retrying, retry_if_exception

from pipeline.clock import Clock
from pipeline.engine.events import Emitter
from pipeline.engine.stop import BUSY, Stop
from pipeline.errors import ConfigError, ModelError, ModelUnavailable, Pause
from pipeline.llm.base import Model, ModelInfo

#: So many overloads of a call are waited for as the provider asks.
_AS_ASKED = 3


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a run is with its provider."""

    #: Tries of one call that ended in an error, over all resumes of its attempt. Those that a busy provider refused
    #: while it answered other calls of the run do not count: that call was unlucky, not hopeless.
    tries: int = 8
    #: First wait; doubles with each error.
    base_seconds: float = 1.0
    longest_seconds: float = 60.0
    #: A wait that would pass this pauses the run instead, resumably.
    patience_seconds: float = 900.0
    #: The advice once it gives up.
    later: str = "Resume later; nothing that was answered is asked again."

    def wait(self, error: ModelError, failures: int) -> float:
        """Return the seconds to wait after the n-th failure: what the provider asked for, else doubling.

        An overload that lasts is waited for longer than asked, so that as many tries last as long.
        """
        asked = error.data.get("retry_after")
        own: float = min(self.base_seconds * 2 ** max(failures - 1, 0), self.longest_seconds)
        if asked is None:
            return own
        lasting = error.data.get("status") == 529 and (not asked or failures > _AS_ASKED)
        return max(float(asked), own) if lasting else float(asked)


class CoolDown:
    """After a 429 or 529 every worker waits until the same moment."""

    def __init__(self, clock: Clock, stop: Stop, emit: Emitter) -> None:
        self._clock = clock
        self._stop = stop
        self.emit = emit
        self._lock = threading.Lock()
        self._until = 0.0

    def extend(self, seconds: float, reason: str) -> None:
        """Let no call out for this long."""
        with self._lock:
            until = self._clock.monotonic() + seconds
            if until <= self._until:
                return
            self._until = until
        self.emit.waiting(seconds, reason)

    def wait(self) -> None:
        """Return when calls may go out.

        Raises:
            Pause: The run is stopping.
        """
        self._stop.check()
        while (left := self._until - self._clock.monotonic()) > 0:
            self._stop.rest(left)


class _Failures:
    """Errors of one call that count."""

    def __init__(self, before: int, answers: Callable[[], int]) -> None:
        self.count = before
        #: Of these, answers that a repeat will hardly change.
        self.alike = 0
        self._answers = answers
        self._seen = answers()

    def add(self, error: ModelError) -> int:
        """Count it, unless others were answered since the last; return how many count now, at least one."""
        self.alike += "tries" in error.data
        seen, self._seen = self._seen, self._answers()
        if error.data.get("status") not in BUSY or self._seen == seen:
            self.count += 1
        return max(self.count, 1)

    def most(self, policy: RetryPolicy, error: ModelError) -> int:
        """Return the tries after which the call is given up; 0: not yet."""
        worth = int(error.data.get("tries", policy.tries))
        return policy.tries if self.count >= policy.tries else worth if self.alike >= worth else 0


def retrying(policy: RetryPolicy, before: int, cool_down: CoolDown, stop: Stop, answers: Callable[[], int]) -> Retrying:
    """Return a tenacity loop for one call that has already failed `before` times.

    429 and 529 cool down all workers; other waits are this call's own. Giving up raises Pause.

    Args:
        answers: How many calls of the run were answered so far.
    """
    # However often it failed before, a resume tries once more.
    failures = _Failures(min(before, policy.tries - 1), answers)

    def wait(call: RetryCallState) -> float:
        error = _error(call)
        seconds = policy.wait(error, failures.add(error))
        if seconds > policy.patience_seconds:
            _pause(stop, error, f"the provider asks to wait {seconds:.0f} s", policy.later)
        if error.data.get("status") in BUSY:
            cool_down.extend(seconds, str(error.data["status"]))
            return 0.0
        if not failures.most(policy, error):
            cool_down.emit.waiting(seconds, str(error.data.get("status") or error.message.rstrip(".")))
        return seconds

    def end(call: RetryCallState) -> NoReturn:
        give_up(stop, _error(call), failures.most(policy, _error(call)), policy.later)

    return Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelError) and error.retryable),
        # Looked at after the wait is known: the error is counted by then.
        stop=lambda call: failures.most(policy, _error(call)) > 0,
        wait=wait,
        sleep=stop.rest,
        retry_error_callback=end,
    )


def _error(call: RetryCallState) -> ModelError:
    error = call.outcome.exception() if call.outcome is not None else None
    assert isinstance(error, ModelError)
    return error


def give_up(stop: Stop, error: ModelError, tries: int, later: str = RetryPolicy().later) -> NoReturn:
    """Leave the run resumable: a call has failed as often as the policy allows.

    Raises:
        Pause: Always.
    """
    _pause(stop, error, f"{tries} tries failed", later)


def _pause(stop: Stop, error: ModelError, why: str, later: str) -> NoReturn:
    text = f"{error.message.rstrip('.')} ({why})."
    stop.pause("paused_rate_limit", ModelUnavailable(text, code=error.code, hint=error.hint or later, **error.data))


def look_up(model: Model, clock: Clock, emit: Emitter, policy: RetryPolicy | None = None) -> ModelInfo:
    """Return what a free look-up says of a model; tried as often as a call is, with the same waits.

    Raises:
        CredentialMissing, ModelRejected: As `Model.check`.
        ModelUnavailable: It failed as often as the policy allows.
    """
    stop = Stop(clock)
    cool_down = CoolDown(clock, stop, emit)
    patience = replace(policy or RetryPolicy(), later="Try again later; nothing was started.")

    def attempt() -> ModelInfo:
        cool_down.wait()
        return model.check()

    try:
        info: ModelInfo = retrying(patience, 0, cool_down, stop, lambda: 0)(attempt)
    except Pause as pause:
        raise pause.cause from None
    if not isinstance(info, ModelInfo):
        text = f"The model's check() returned a {type(info).__name__}; it returns a ModelInfo."
        hint = 'Write return ModelInfo("my-model", paid=False) (pipeline.llm.base).'
        raise ConfigError(text, code="invalid_model_info", hint=hint)
    return info
