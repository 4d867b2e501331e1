"""How close `--concurrency auto` keeps to what a provider allows: real HTTP against the test server's rate limits.

    python tests/benchmarks/pace.py [--real] [NAME ...]

Minutes pass ten times as fast for both sides (latency too), unless --real. Prints one line a figure: name, measured,
goal, ok or MISSED. No test; nothing fails by it.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anthropic  # noqa: F401  (that takes a second, which is not to be measured)

sys.path[0] = str(Path(__file__).resolve().parents[2])

from pipeline.clock import SystemClock  # noqa: E402
from pipeline.engine.pace import MOST  # noqa: E402
from pipeline.engine.pipeline import Pipeline  # noqa: E402
from pipeline.engine.result import RunResult  # noqa: E402
from pipeline.engine.step import StepContext, step  # noqa: E402
from pipeline.llm.anthropic import AnthropicModel  # noqa: E402
from pipeline.llm.base import Message, Request  # noqa: E402
from pipeline.store.memory import MemoryStore  # noqa: E402
from tests.servers.billing import BillingServer  # noqa: E402
from tests.servers.mishaps import Mishap, Plan  # noqa: E402
from tests.servers.rate_limits import RateLimits  # noqa: E402

_MODEL = "claude-sonnet-5-5"
_PAST_FIRST_MINUTE = 60.0


class FastClock(SystemClock):
    """The machine's clock, so many times as fast."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.times = times
        self._begun = super().monotonic()
        self._at = datetime.now(UTC)

    def monotonic(self) -> float:
        return (super().monotonic() - self._begun) * self.times

    def now(self) -> datetime:
        return self._at + timedelta(seconds=self.monotonic())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return super().wait(event, seconds / self.times)


def say(name: str, measured: float, goal: float, *, least: bool = False, unit: str = "") -> None:
    """One figure; smaller is better, unless `least`."""
    fine = measured >= goal if least else measured <= goal
    print(f"{name:74} {measured:8.3f} {unit:2} goal {goal:6.3f}  {'ok' if fine else 'MISSED'}", flush=True)


def ask_all(
    server: BillingServer, clock: FastClock, calls: int, *, concurrency: int | str = "auto", output: int = 100
) -> tuple[RunResult, float]:
    """A run of so many calls, in one map, and the seconds it took."""

    def ask(ctx: StepContext, number: int) -> int:
        request = Request(_MODEL, [Message("user", f"{number} " + "y" * 4 * output)], max_tokens=4000, label="call")
        return len(ctx.ask(request).text)

    @step("calls")
    def body(ctx: StepContext) -> dict[str, int]:
        return {"answered": len(ctx.map("call", range(calls), ask, key=str))}

    model = AnthropicModel(_MODEL, api_key="test", base_url=server.url)
    begun = clock.monotonic()
    try:
        result = Pipeline("pace", [body]).run(
            store=MemoryStore(clock),
            model=model,
            clock=clock,
            options={"concurrency": concurrency, "max_cost_usd": None},
        )
    finally:
        model.close()
    assert result.status == "completed", result.error
    return result, clock.monotonic() - begun


def shares(limits: RateLimits, a_minute: float) -> tuple[float, float]:
    """Of so many a minute, the part that was used after the first minute; of the requests of that time, the refused.

    More than the whole where the first minute left something over.
    """
    later = [let_in for at, let_in in limits.log if at >= _PAST_FIRST_MINUTE]
    used = sum(later)
    return used / (a_minute * (limits.log[-1][0] - _PAST_FIRST_MINUTE) / 60), 1 - used / len(later)


def limited(
    times: float, a_minute: int, latency: float, minutes: int, *, burst: float = 1.0, concurrency: int | str = "auto"
) -> None:
    """A limit of requests a minute."""
    clock = FastClock(times)
    with BillingServer(latency=latency / times) as server:
        server.limits = RateLimits(requests=a_minute, burst=burst, clock=clock)
        ask_all(server, clock, a_minute * (minutes - 1) + math.ceil(a_minute * (1 + burst)), concurrency=concurrency)
        used, refused = shares(server.limits, a_minute)
    name = f"{a_minute} a minute, {latency:g} s a call, --concurrency {concurrency}"
    name += f", held over {burst * 60:.0f} s" if burst < 1 else ""
    say(f"{name}: used of what is allowed", used, 0.95, least=True)
    say("  refused with 429 after the first minute", refused, 0.02)


def limited_tokens(times: float, a_minute: int, latency: float, minutes: int) -> None:
    """A limit of output tokens a minute, where it is what stands in the way."""
    clock = FastClock(times)
    output = 500
    with BillingServer(latency=latency / times) as server:
        server.limits = limits = RateLimits(requests=4000, output_tokens=a_minute, clock=clock)
        ask_all(server, clock, (minutes + 1) * a_minute // output, output=output - 1)
    used, refused = shares(limits, a_minute / output)
    say(f"{a_minute} output tokens a minute, {latency:g} s a call: used", used, 0.95, least=True)
    say("  refused with 429 after the first minute", refused, 0.02)


def unlimited(times: float, latency: float, calls: int) -> None:
    """No limit: against a run with as many calls at once as there may be, from the first."""
    for told in (True, False):
        seconds: dict[int | str, float] = {}
        for concurrency in (MOST, "auto"):
            clock = FastClock(times)
            with BillingServer(latency=latency / times) as server:
                server.limits = RateLimits(requests=1_000_000, clock=clock) if told else None
                _, seconds[concurrency] = ask_all(server, clock, calls, concurrency=concurrency)
        name = (
            f"{calls} calls of {latency:g} s, no limit{'' if told else ', nothing said of it'}: auto / {MOST} at once"
        )
        say(name, seconds["auto"] / seconds[MOST], 1.1, unit="x")
        say(
            "  auto / latency alone",
            seconds["auto"] / (math.ceil(calls / MOST) * latency),
            1.1,
            unit="x",
        )


class Overload(Plan):
    """A provider that answers nobody for a while."""

    def __init__(self, clock: FastClock, begin: float, end: float) -> None:
        super().__init__()
        self._clock, self._begin, self._end = clock, begin, end
        #: When each request came.
        self.came: list[float] = []

    def draw(self, number: int, question: str, asked: str, label: str = "", correction: bool = False) -> Mishap | None:
        at = self._clock.monotonic()
        self.came.append(at)
        return Mishap("overloaded") if self._begin <= at < self._end else None


def herd(times: float, concurrency: int | str) -> None:
    """Overload from the 20th to the 40th second: how many calls go out in the second after each pause."""
    clock = FastClock(times)
    begin, end, latency = 20.0, 40.0, 2.0
    plan = Overload(clock, begin, end)
    with BillingServer(plan=plan, latency=latency / times) as server:
        ask_all(server, clock, 2000, concurrency=concurrency)
    before = max(sum(at <= other < at + latency for other in plan.came) for at in plan.came if at < begin - latency)
    again = min(at for at in plan.came if at >= end)
    name = f"overload, --concurrency {concurrency}: {before} in flight before"
    say(f"{name}; in the second after it", sum(again <= at < again + 1 for at in plan.came), before / 4)
    say("  requests in vain while it lasted", sum(begin + 1.5 * latency <= at < end for at in plan.came), before / 2)


class Storm(Plan):
    """Refuses every question twice."""

    def __init__(self, mishap: Mishap) -> None:
        super().__init__()
        self._mishap = mishap
        self._asked: Counter[str] = Counter()

    def draw(self, number: int, question: str, asked: str, label: str = "", correction: bool = False) -> Mishap | None:
        with self._lock:
            self._asked[question] += 1
            return self._mishap if self._asked[question] <= 2 else None


def storm(mishap: Mishap, alone: float) -> None:
    """Eight calls, four at once, each refused twice: against calls that each wait by themselves, without a probe.

    Args:
        alone: Seconds that one such call waits.
    """
    clock = FastClock(1.0)
    with BillingServer(plan=Storm(mishap)) as server:
        _, seconds = ask_all(server, clock, 8, concurrency=4)
        sent = server.bill.requests
    told = "" if mishap.retry_after is None else f", retry-after {mishap.retry_after}"
    say(f"two refusals a call ({mishap.kind}{told}): ours / each by itself", seconds / (2 * alone), 2.0, unit="x")
    say("  requests a call", sent / 8, 3.0)


def _storms(_: float) -> None:
    storm(Mishap("rate_limit", retry_after="1"), alone=2.0)
    storm(Mishap("overloaded", retry_after="1"), alone=2.0)
    # One second, then two.
    storm(Mishap("overloaded"), alone=3.0)


def _requests(times: float) -> None:
    limited(times, 60, 1.0, 5)
    limited(times, 60, 10.0, 4)
    limited(times, 240, 3.0, 3)


def _herds(times: float) -> None:
    herd(times, "auto")
    herd(times, 32)


ALL: dict[str, Callable[[float], None]] = {
    "requests": _requests,
    "strict": lambda times: limited(times, 60, 1.0, 4, burst=0.1),
    "fixed": lambda times: limited(times, 60, 1.0, 4, concurrency=32),
    "tokens": lambda times: limited_tokens(times, 20_000, 5.0, 5),
    "unlimited": lambda times: unlimited(min(times, 5.0), 20.0, 1000),
    "herd": _herds,
    "storm": _storms,
    "minute": lambda _: limited(1.0, 120, 2.0, 4),
}

if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    for figure, measure in ALL.items():
        if figure in chosen or (not chosen and (figure != "minute" or "--real" in sys.argv)):
            measure(1.0 if "--real" in sys.argv else 10.0)
