"""When a try is repeated and how long it waits; the only retry layer above a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tenacity import RetryCallState, Retrying, retry_if_exception

from pipeline.engine.limits import CoolDown
from pipeline.engine.stop import Stop
from pipeline.errors import ModelError, ModelUnavailable, Pause


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a run is with its provider."""

    #: Tries of one call that ended in an error, over all resumes of its attempt. Those that a busy provider refused
    #: while it answered other calls of the run are not among them: that call was unlucky, not hopeless.
    tries: int = 8
    #: First wait; doubles with each error.
    base_seconds: float = 1.0
    longest_seconds: float = 60.0
    #: A wait that would pass this pauses the run instead, resumably.
    patience_seconds: float = 900.0
    #: The advice once it gives up.
    later: str = "Resume later; nothing that was answered is asked again."

    def wait(self, error: ModelError, failures: int) -> float:
        """Seconds to wait after the n-th failure: what the provider asked for, else doubling.

        An overload that lasts is waited for longer than asked, so that as many tries last as long.
        """
        asked = error.data.get("retry_after")
        own: float = min(self.base_seconds * 2 ** max(failures - 1, 0), self.longest_seconds)
        if asked is None:
            return own
        lasting = error.data.get("status") == 529 and (not asked or failures > _AS_ASKED)
        return max(float(asked), own) if lasting else float(asked)


#: So many overloads of a call are waited for as the provider asks.
_AS_ASKED = 3
#: The provider is busy, with all of us: everybody waits.
BUSY = frozenset({429, 529})


class _Failures:
    """Errors of one call that count."""

    def __init__(self, before: int, answers: Callable[[], int]) -> None:
        self.count = before
        #: Of these, answers that a repeat will hardly change.
        self.alike = 0
        self._answers = answers
        self._seen = answers()

    def add(self, error: ModelError) -> int:
        """Count it, unless others were answered since the last; how many count now, at least one."""
        self.alike += "tries" in error.data
        seen, self._seen = self._seen, self._answers()
        if error.data.get("status") not in BUSY or self._seen == seen:
            self.count += 1
        return max(self.count, 1)

    def most(self, policy: RetryPolicy, error: ModelError) -> int:
        """Tries after which the call is given up; 0: not yet."""
        worth = int(error.data.get("tries", policy.tries))
        return policy.tries if self.count >= policy.tries else worth if self.alike >= worth else 0


def retrying(policy: RetryPolicy, before: int, cool_down: CoolDown, stop: Stop, answers: Callable[[], int]) -> Retrying:
    """A tenacity loop for one call that has already failed `before` times.

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
            cool_down.announce(seconds, str(error.data.get("status") or error.message.rstrip(".")))
        return seconds

    return Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelError) and error.retryable),
        # Asked after the wait is known: the error is counted by then.
        stop=lambda call: failures.most(policy, _error(call)) > 0,
        wait=wait,
        sleep=stop.rest,
        retry_error_callback=lambda call: give_up(
            stop, _error(call), failures.most(policy, _error(call)), policy.later
        ),
    )


def _error(call: RetryCallState) -> ModelError:
    assert call.outcome is not None
    error = call.outcome.exception()
    assert isinstance(error, ModelError)
    return error


def give_up(stop: Stop, error: ModelError, tries: int, later: str = RetryPolicy().later) -> NoReturn:
    """Leave the run resumable: a call has failed as often as the policy allows.

    Raises:
        Pause: Always.
    """
    _pause(stop, error, f"{tries} tries failed", later)


def _pause(stop: Stop, error: ModelError, why: str, later: str) -> NoReturn:
    cause = ModelUnavailable(f"{error.message.rstrip('.')} ({why}).", hint=error.hint or later, **error.data)
    stop.request("paused_rate_limit", cause)
    raise Pause("paused_rate_limit", cause)
